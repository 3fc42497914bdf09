//! What changed between two texts, line by line.

use std::ops::Range;

/// One line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// In both texts.
    Same(&'a str),
    /// In the old text only.
    Removed(&'a str),
    /// In the new text only.
    Added(&'a str),
}

/// The lines of both texts in order, with as many as possible in common.
pub fn lines<'a>(old: &'a str, new: &'a str) -> Vec<Line<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same_head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = |v: &[&'a str], n: usize| v[v.len() - n..].to_vec();
    let same_tail =
        old[same_head..].iter().rev().zip(new[same_head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut result: Vec<Line> = old[..same_head].iter().copied().map(Line::Same).collect();
    result.extend(middle(&old[same_head..old.len() - same_tail], &new[same_head..new.len() - same_tail]));
    result.extend(tail(&old, same_tail).into_iter().map(Line::Same));
    result
}

/// The ranges of lines to show: those that changed, with `context` lines around each.
pub fn hunks(lines: &[Line], context: usize) -> Vec<Range<usize>> {
    let mut hunks: Vec<Range<usize>> = Vec::new();
    for changed in (0..lines.len()).filter(|i| !matches!(lines[*i], Line::Same(_))) {
        let (from, to) = (changed.saturating_sub(context), (changed + context + 1).min(lines.len()));
        match hunks.last_mut() {
            Some(last) if from <= last.end => last.end = to,
            _ => hunks.push(from..to),
        }
    }
    hunks
}

/// A difference in the form of `diff -u`, with `context` lines around each change; empty where nothing changed.
pub fn unified(old: &str, new: &str, context: usize) -> String {
    let lines = lines(old, new);
    let mut text = String::new();
    for (number, hunk) in hunks(&lines, context).into_iter().enumerate() {
        if number > 0 {
            text.push_str("...\n");
        }
        for line in &lines[hunk] {
            let (mark, content) = match line {
                Line::Same(content) => (' ', content),
                Line::Removed(content) => ('-', content),
                Line::Added(content) => ('+', content),
            };
            text.push(mark);
            text.push_str(content);
            text.push('\n');
        }
    }
    text
}

/// The longest common subsequence, by the table of lengths; texts here have some hundreds of lines.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let mut common = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut result = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            result.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if common[i + 1][j] >= common[i][j + 1] {
            result.push(Line::Removed(old[i]));
            i += 1;
        } else {
            result.push(Line::Added(new[j]));
            j += 1;
        }
    }
    result.extend(old[i..].iter().copied().map(Line::Removed));
    result.extend(new[j..].iter().copied().map(Line::Added));
    result
}

#[cfg(test)]
mod tests {
    use super::{Line, lines, unified};
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\ng", "a\nb\nC\nd\ne\nf\ng\nh");
        assert_eq!(unified(old, new, 1), " b\n-c\n+C\n d\n...\n g\n+h\n");
        assert_eq!(unified(old, old, 3), "");
        let touching = unified("a\nb\nc\nd", "A\nb\nc\nD", 1);
        assert_eq!(touching, "-a\n+A\n b\n c\n-d\n+D\n", "nothing is left out between them");
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_off_a_difference(
            old in prop::collection::vec("[abc]", 0..12),
            new in prop::collection::vec("[abc]", 0..12),
        ) {
            let (old_text, new_text) = (old.join("\n"), new.join("\n"));
            let difference = lines(&old_text, &new_text);
            let read = |wanted: fn(&Line) -> bool| -> Vec<String> {
                difference.iter().filter(|l| wanted(l)).map(|l| match l {
                    Line::Same(t) | Line::Removed(t) | Line::Added(t) => t.to_string(),
                }).collect()
            };
            prop_assert_eq!(read(|l| !matches!(l, Line::Added(_))), old);
            prop_assert_eq!(read(|l| !matches!(l, Line::Removed(_))), new);
        }
    }
}

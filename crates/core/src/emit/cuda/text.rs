//! Pieces of C: expressions with their binding strength, and indented lines.

/// How strongly the outermost operator of an expression binds, weakest first, as in C.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Strength {
    /// `c ? a : b`
    Choice,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `^`, and `&`, which nobody remembers to bind more strongly.
    Bits,
    /// `==`, `!=`, `<`, `<=`
    Compare,
    /// `<<`, `>>`
    Shift,
    /// `+`, `-`
    Sum,
    /// `*`, `/`, `%`
    Product,
    /// `-x`, `!x`, `(int)x`
    Unary,
    /// A name, a number, a call, an element.
    Primary,
}

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) strength: Strength,
}

impl Text {
    pub(super) fn new(text: impl Into<String>, strength: Strength) -> Text {
        Text { text: text.into(), strength }
    }

    /// A name, a number, a call or an element.
    pub(super) fn primary(text: impl Into<String>) -> Text {
        Text::new(text, Strength::Primary)
    }

    /// The text, in brackets if it binds more weakly than its place asks for.
    pub(super) fn at_least(self, strength: Strength) -> String {
        if self.strength < strength { format!("({})", self.text) } else { self.text }
    }
}

/// Lines of C with their depth.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    lines: Vec<(usize, String)>,
    depth: usize,
}

/// The width that emitted text tries to keep.
pub(super) const WIDTH: usize = 110;
const INDENT: usize = 4;

impl Lines {
    pub(super) fn at_depth(depth: usize) -> Lines {
        Lines { lines: Vec::new(), depth }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether a name is declared by one of the least deep lines.
    pub(super) fn declares(&self) -> bool {
        self.lines.iter().any(|(depth, line)| *depth == self.depth && is_declaration(line))
    }

    /// The same lines, one level further out.
    pub(super) fn raised(mut self) -> Lines {
        for (depth, _) in &mut self.lines {
            *depth -= 1;
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn push(&mut self, line: impl Into<String>) {
        self.lines.push((self.depth, line.into()));
    }

    pub(super) fn append(&mut self, other: Lines) {
        self.lines.extend(other.lines);
    }

    /// Writes `head { body }`: on one line where the body is one short statement, without a block where there is
    /// neither a head nor a name to confine, in a block of its own otherwise.
    /// The body was written one level deeper.
    pub(super) fn block(&mut self, head: &str, body: Lines) {
        if let [(depth, only)] = &body.lines[..]
            && *depth == self.depth + 1
            && is_simple(only)
            && !head.is_empty()
            && INDENT * self.depth + head.len() + 1 + only.len() <= WIDTH
        {
            let line = format!("{head} {only}");
            return self.push(line);
        }
        if head.is_empty() && !body.declares() {
            return self.append(body.raised());
        }
        self.push(if head.is_empty() { "{".to_string() } else { format!("{head} {{") });
        self.append(body);
        self.push("}");
    }

    /// Writes `if (a) { body }`, to which no `else` will be added: `if (a) if (b)` becomes `if (a && b)`.
    pub(super) fn guarded(&mut self, head: &str, body: Lines) {
        let joined = body.only_if().and_then(|inner| {
            let (a, b) = (head.strip_prefix("if (")?.strip_suffix(')')?, inner);
            let plain = !a.contains("||") && !b.contains("||") && !a.contains('?') && !b.contains('?');
            plain.then(|| format!("if ({a} && {b})"))
        });
        let Some(head) = joined else { return self.block(head, body) };
        let mut lines = body.raised().lines;
        let first = lines[0].1.clone();
        if lines.len() == 1 {
            let at = closing(&first).unwrap_or(first.len() - 1);
            let only = first[at + 1..].trim_start().to_string();
            return self.block(&head, Lines { lines: vec![(self.depth + 1, only)], depth: self.depth + 1 });
        }
        lines[0].1 = format!("{head} {{");
        self.lines.extend(lines);
    }

    /// The condition, if all of the lines are one `if` without `else`.
    fn only_if(&self) -> Option<&str> {
        let (depth, first) = self.lines.first()?;
        let close = closing(first)?;
        let cond = first.strip_prefix("if (").map(|_| &first[4..close])?;
        let whole = match &self.lines[1..] {
            [] => true,
            [inner @ .., last] => {
                first.ends_with('{')
                    && last.0 == *depth
                    && last.1 == "}"
                    && inner.iter().all(|(d, line)| d > depth || line.is_empty())
            }
        };
        whole.then_some(cond)
    }

    /// Writes `else { body }` after a block.
    pub(super) fn otherwise(&mut self, body: Lines) {
        let chained = match body.lines.first() {
            Some((depth, first)) => {
                let whole = first.starts_with("if (")
                    && first.ends_with('{')
                    && body.lines.last().is_some_and(|l| l.0 == *depth && l.1 == "}")
                    && body.lines[1..body.lines.len() - 1]
                        .iter()
                        .all(|l| l.0 > *depth || l.1.starts_with("} else"));
                whole.then(|| first.clone())
            }
            None => None,
        };
        let closed = self.lines.last().is_some_and(|l| l.0 == self.depth && l.1 == "}");
        if closed {
            self.lines.pop();
        }
        let joint = if closed { "} else" } else { "else" };
        match chained {
            Some(first) if closed => {
                self.push(format!("{joint} {first}"));
                let rest = body.lines.into_iter().skip(1).map(|(depth, line)| (depth - 1, line));
                self.lines.extend(rest);
            }
            _ if closed => {
                self.push(format!("{joint} {{"));
                self.append(body);
                self.push("}");
            }
            _ => self.block(joint, body),
        }
    }

    /// The text.
    pub(super) fn into_text(self) -> String {
        let mut text = String::new();
        let lines = self.lines.iter().flat_map(|(depth, line)| broken(line, *depth));
        for (depth, line) in lines {
            if !line.is_empty() {
                text.extend(std::iter::repeat_n(' ', INDENT * depth));
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// Where the first bracket of a line is closed.
fn closing(line: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in line.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Breaks a long line where its brackets are least deep, as late as possible.
fn broken(line: &str, depth: usize) -> Vec<(usize, String)> {
    let room = WIDTH.saturating_sub(INDENT * depth);
    if line.len() <= room || line.starts_with("//") {
        return vec![(depth, line.to_string())];
    }
    let mut best: Option<(usize, usize)> = None;
    let mut brackets = 0usize;
    for (at, c) in line.char_indices().take_while(|(at, _)| *at < room) {
        match c {
            '(' | '[' | '{' => brackets += 1,
            ')' | ']' | '}' => brackets = brackets.saturating_sub(1),
            ' ' => {
                let (before, after) = (&line[..at], &line[at + 1..]);
                let good =
                    before.ends_with(['=', ',', ';']) && !before.ends_with("<=") && !before.ends_with(">=")
                        || before.ends_with("&&")
                        || after.starts_with("? ")
                        || after.starts_with(": ");
                if good && best.is_none_or(|(depth, _)| brackets <= depth) {
                    best = Some((brackets, at));
                }
            }
            _ => {}
        }
    }
    let Some((_, at)) = best else { return vec![(depth, line.to_string())] };
    let mut lines = vec![(depth, line[..at].to_string())];
    let rest = broken(&line[at + 1..], depth + 1);
    lines.extend(rest);
    lines
}

/// Whether a line is a whole statement that may follow its `for` or `if` on the same line.
fn is_simple(line: &str) -> bool {
    line.ends_with(';')
        && !is_declaration(line)
        && !["#", "if ", "for ", "//"].iter().any(|s| line.starts_with(s))
}

fn is_declaration(line: &str) -> bool {
    const TYPES: [&str; 11] = [
        "const ",
        "int ",
        "long long ",
        "unsigned ",
        "float ",
        "double ",
        "float2 ",
        "double2 ",
        "bf16 ",
        "f16 ",
        "__align__(",
    ];
    TYPES.iter().any(|start| line.starts_with(start))
}

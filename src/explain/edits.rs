//! Edits of a schedule that are worth trying: each changes one idea, and everything that has to follow from it.
//!
//! An edit is text to text. Whether it is legal is not asked here: the schedule machinery refuses what is not, and what is refused is
//! dropped. So a rule may be simple, and wrong now and then.

use serde::Serialize;
use warpwright_core::schedule::{Argument, Call, LoopRef, Schedule};

/// A schedule that differs from the one at hand by one idea.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// What kind of idea it is: of those alike only the best few are worth telling.
    pub idea: Idea,
    /// The idea in words.
    pub about: String,
    /// The schedule.
    pub text: String,
}

/// What an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Idea {
    /// Where elements of shared memory lie.
    Padding,
    /// Which threads are neighbours.
    Lanes,
    /// When data are fetched.
    Pipeline,
    /// How wide accesses are.
    Width,
    /// How many partial sums there are.
    Parts,
    /// How large tiles are.
    Tiles,
    /// How many terms a step has.
    Depth,
    /// What is written out.
    Unrolling,
    /// A parameter of the family.
    Parameter,
    /// The next rung of the ladder.
    Rung,
}

/// What is known of the kernel whose schedule is edited.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Bytes of an element.
    pub bytes: i64,
    /// Threads of a block.
    pub threads: i64,
    /// Shared buffers whose accesses conflict.
    pub conflicting: Vec<String>,
    /// Whether accesses to device memory are uncoalesced.
    pub uncoalesced: bool,
}

/// The edits, those of what was found first.
pub fn of_schedule(schedule: &Schedule, facts: &Facts) -> Vec<Edit> {
    let steps = Steps(schedule.trace().iter().map(|step| step.call()).collect());
    let mut edits = Vec::new();
    for buffer in &facts.conflicting {
        edits.extend(padding(&steps, buffer, facts));
    }
    if facts.uncoalesced {
        edits.extend(turned_lanes(&steps));
    }
    edits.extend(pipelines(&steps));
    edits.extend(wide_copies(&steps, facts));
    edits.extend(wide_stores(&steps, facts));
    edits.extend(numbers_of_parts(&steps));
    edits.extend(tiles(&steps));
    edits.extend(unrolling(&steps));
    if !facts.uncoalesced {
        edits.extend(turned_lanes(&steps));
    }
    let before = steps.text();
    let mut seen = vec![before];
    edits.retain(|edit| {
        let new = !seen.contains(&edit.text);
        seen.push(edit.text.clone());
        new
    });
    edits
}

/// The steps of a schedule, to be changed.
#[derive(Clone)]
struct Steps(Vec<Call>);

impl Steps {
    fn text(&self) -> String {
        self.0.iter().map(|call| format!("{call}\n")).collect()
    }

    fn edit(self, idea: Idea, about: impl Into<String>) -> Edit {
        Edit { idea, about: about.into(), text: self.text() }
    }

    /// The places of the steps of this name about a loop.
    fn about(&self, name: &str, label: &str, loop_name: &str) -> Vec<usize> {
        let target = LoopRef::new(label, loop_name);
        let is = |call: &Call| call.name == name && call.loop_at(0).is_ok_and(|l| l == target);
        (0..self.0.len()).filter(|at| is(&self.0[*at])).collect()
    }

    /// The place of the only step of this name about a loop.
    fn only(&self, name: &str, label: &str, loop_name: &str) -> Option<usize> {
        match self.about(name, label, loop_name)[..] {
            [at] => Some(at),
            _ => None,
        }
    }

    /// The splits of a loop by a factor, in order: places and factors.
    fn factors(&self, label: &str, loop_name: &str) -> Vec<(usize, i64)> {
        let places = self.about("split", label, loop_name);
        places.into_iter().filter_map(|at| Some((at, self.0[at].int_at(1).ok()?))).collect()
    }

    fn set_int(&mut self, at: usize, argument: usize, value: i64) {
        self.0[at].args[argument] = Argument::Int(value);
    }

    /// The place of the `cache_read` into shared memory that makes this buffer.
    fn staging(&self, buffer: &str) -> Option<usize> {
        self.0.iter().position(|call| {
            call.name == "cache_read"
                && call.results.first().is_some_and(|r| r == buffer)
                && call.word_at(2) == Ok("shared")
        })
    }

    /// The buffers that are staged in shared memory.
    fn staged(&self) -> Vec<String> {
        let made = self.0.iter().filter(|c| c.name == "cache_read" && c.word_at(2) == Ok("shared"));
        made.filter_map(|c| c.results.first().cloned()).collect()
    }

    /// The place behind the last step that is not about how loops are written out.
    fn before_writing_out(&self) -> usize {
        let writes_out = |call: &Call| matches!(call.name.as_str(), "vectorize" | "unroll");
        self.0.iter().rposition(|call| !writes_out(call)).map_or(0, |at| at + 1)
    }

    /// Adds conditions for which a copy of the kernel of its own is made, where there is such a step.
    fn specialize(&mut self, conditions: &[String]) {
        let Some(at) = self.0.iter().position(|c| c.name == "specialize") else {
            let words = conditions.iter().fold(Call::new("specialize"), |call, c| call.word(c));
            self.0.insert(0, words);
            return;
        };
        for condition in conditions {
            let argument = Argument::Word(condition.clone());
            if !self.0[at].args.contains(&argument) {
                self.0[at].args.push(argument);
            }
        }
    }

    /// A size is a multiple of another number now, in the conditions that name it.
    fn respecialize(&mut self, size: &str, from: i64, to: i64) {
        let (old, new) = (Argument::Word(format!("{size}%{from}")), Argument::Word(format!("{size}%{to}")));
        for call in self.0.iter_mut().filter(|c| c.name == "specialize") {
            call.args.iter_mut().filter(|a| **a == old).for_each(|a| a.clone_from(&new));
        }
    }

    /// The label whose loops are bound to blocks.
    fn main_label(&self) -> Option<String> {
        let binds =
            |call: &&Call| call.name == "bind" && call.word_at(1).is_ok_and(|w| w.starts_with("block"));
        let call = self.0.iter().find(binds)?;
        Some(call.loop_at(0).ok()?.label)
    }

    /// Threads of a block by the loops of a label that are bound to them, where all their extents are known.
    fn threads(&self, label: &str) -> Option<i64> {
        let bound = self.0.iter().find(|call| {
            call.name == "bind"
                && call.args.last() == Some(&Argument::Word("threads".into()))
                && call.loop_at(0).is_ok_and(|l| l.label == label)
        })?;
        let mut product = 1;
        for argument in &bound.args {
            if let Argument::Loop(target) = argument {
                product *= self.extent(target)?;
            }
        }
        Some(product)
    }

    /// The extent of a loop that a split made, where the loop that was split has a known one.
    fn extent(&self, target: &LoopRef) -> Option<i64> {
        // The last split that gives the loop counts; an inner one has its factor, an outer one a part of what was split.
        let made = self.0.iter().enumerate().rev().find(|(_, call)| {
            call.name == "split"
                && call.loop_at(0).is_ok_and(|l| l.label == target.label)
                && call.results.contains(&target.name)
        });
        let (at, call) = made?;
        let factor = call.int_at(1).ok()?;
        if call.results.get(1) == Some(&target.name) {
            return Some(factor);
        }
        let before = Steps(self.0[..at].to_vec());
        Some(before.extent(&call.loop_at(0).ok()?)? / factor)
    }
}

/// A shared buffer with other steps from row to row.
fn padding(steps: &Steps, buffer: &str, facts: &Facts) -> Vec<Edit> {
    let wide = (16 / facts.bytes.max(1)).max(1);
    let mut edits = Vec::new();
    let known = steps.0.iter().position(|c| c.name == "storage_align" && c.word_at(0) == Ok(buffer));
    let name = buffer.strip_suffix("_next").unwrap_or(buffer);
    let about = |elements: i64| {
        let unit = if elements == 1 { "element" } else { "elements" };
        format!("pad the rows of {name} by {elements} {unit}")
    };
    for elements in [wide, 1, 2 * wide] {
        let mut with = steps.clone();
        if let Some(at) = known {
            if with.0[at].int_at(2) == Ok(elements) {
                continue;
            }
            with.set_int(at, 2, elements);
            edits.push(with.edit(Idea::Padding, about(elements)));
            continue;
        }
        let Some(staged) = steps.staging(name) else { continue };
        let ordered = steps.0.iter().position(|c| c.name == "storage_order" && c.word_at(0) == Ok(name));
        // The axis that is not contiguous: the first of the order.
        let axis = match ordered.map(|at| &steps.0[at]) {
            Some(order) => order.word_at(1).unwrap_or("r").to_string(),
            None => "r".to_string(),
        };
        let moved = steps.0.iter().position(|c| c.name == "compute_at" && c.word_at(0) == Ok(name));
        let at = ordered.or(moved).unwrap_or(staged) + 1;
        with.0.insert(at, Call::new("storage_align").word(name).word(axis).int(elements));
        edits.push(with.edit(Idea::Padding, about(elements)));
    }
    edits.extend(pieces(steps, name));
    if known.is_none() && steps.staging(name).is_some() {
        let mut with = steps.clone();
        let at = with.before_writing_out();
        with.0.insert(at, Call::new("swizzle").word(name));
        edits.push(with.edit(Idea::Padding, format!("swizzle {name}")));
    }
    edits
}

/// Elements that a thread reads one after the other stand a whole row apart, and those of neighbouring threads side by side.
fn pieces(steps: &Steps, buffer: &str) -> Option<Edit> {
    let label = steps.main_label()?;
    let mentions = |c: &&Call| c.name == "storage_order" && c.word_at(0) == Ok(buffer);
    let (_, tile) = *steps.factors(&label, "j").get(1)?;
    let fuse = steps.only("fuse", buffer, "r").filter(|_| !steps.0.iter().any(|c| mentions(&c)))?;
    let mut with = steps.clone();
    let order =
        Call::new("storage_order").word(buffer).word("r").word(format!("c%{tile}")).word(format!("c/{tile}"));
    with.0.insert(fuse, order);
    Some(with.edit(Idea::Padding, format!("store every {tile}th column of {buffer} side by side")))
}

/// Neighbouring threads along the other axis.
fn turned_lanes(steps: &Steps) -> Option<Edit> {
    let label = steps.main_label()?;
    let bound = steps.0.iter().find(|call| {
        call.name == "bind"
            && call.args.last() == Some(&Argument::Word("threads".into()))
            && call.loop_at(0).is_ok_and(|l| l.label == label)
    })?;
    let loops: Vec<&LoopRef> =
        bound.args.iter().filter_map(|a| if let Argument::Loop(l) = a { Some(l) } else { None }).collect();
    let [.., a, b] = loops[..] else { return None };
    let (a, b) = (a.clone(), b.clone());
    let mut with = steps.clone();
    for call in with.0.iter_mut().filter(|c| ["reorder", "bind", "compute_at"].contains(&c.name.as_str())) {
        for argument in &mut call.args {
            if let Argument::Loop(target) = argument {
                if *target == a {
                    *target = b.clone();
                } else if *target == b {
                    *target = a.clone();
                }
            }
        }
    }
    Some(with.edit(Idea::Lanes, format!("neighbouring threads along {a} instead of {b}")))
}

/// Data of the next steps on their way during this one.
fn pipelines(steps: &Steps) -> Vec<Edit> {
    let mut edits = Vec::new();
    if let Some(at) = steps.0.iter().position(|c| c.name == "pipeline") {
        let Ok(stages) = steps.0[at].int_at(1) else { return edits };
        for other in [stages + 1, stages + 2, stages - 1] {
            if other >= 2 {
                let mut with = steps.clone();
                with.set_int(at, 1, other);
                edits.push(
                    with.edit(Idea::Pipeline, format!("{other} stages of the pipeline instead of {stages}")),
                );
            }
        }
        return edits;
    }
    let Some(ko) = steps.staged().first().and_then(|s| {
        let moved = steps.0.iter().find(|c| c.name == "compute_at" && c.word_at(0) == Ok(s.as_str()))?;
        moved.loop_at(1).ok()
    }) else {
        return edits;
    };
    for (via, about) in [
        ("registers", "load the next step into registers before this one is computed"),
        ("shared", "a second buffer for the next step in shared memory"),
    ] {
        let mut with = steps.clone();
        // What is staged twice is not copied element by element by the same loops.
        let at = with.before_writing_out();
        with.0.insert(at, Call::new("pipeline").target(&ko).int(2).option("via", via));
        if via == "registers" {
            travelling(&mut with, at);
        }
        edits.push(with.edit(Idea::Pipeline, about));
    }
    edits
}

/// Where what is staged travels through registers, wide accesses are those from device memory into them.
fn travelling(steps: &mut Steps, pipeline: usize) {
    let staged = steps.staged();
    let mut at = pipeline + 1;
    while at < steps.0.len() {
        let call = &steps.0[at];
        if call.name == "vectorize"
            && let Ok(target) = call.loop_at(0)
            && staged.contains(&target.label)
        {
            let next = LoopRef::new(&format!("{}_next", target.label), &target.name);
            steps.0.insert(at, Call::new("vectorize").target(&next));
            // Elements that are stored apart are stored one by one.
            let order = steps
                .0
                .iter()
                .any(|c| c.name == "storage_order" && c.word_at(0) == Ok(target.label.as_str()));
            if order {
                steps.0[at + 1].name = "unroll".into();
            }
            at += 1;
        }
        at += 1;
    }
}

/// Copies to shared memory by 16 bytes at a time.
fn wide_copies(steps: &Steps, facts: &Facts) -> Vec<Edit> {
    let width = 16 / facts.bytes.max(1);
    let mut edits = Vec::new();
    if width < 2 {
        return edits;
    }
    let mut all = steps.clone();
    let mut names = Vec::new();
    for buffer in steps.staged() {
        let mut with = steps.clone();
        if widened(&mut with, &buffer, width) {
            edits.push(with.edit(Idea::Width, format!("copy {width} elements at a time to {buffer}")));
            widened(&mut all, &buffer, width);
            names.push(buffer);
        }
    }
    if names.len() > 1 {
        edits.insert(
            0,
            all.edit(Idea::Width, format!("copy {width} elements at a time to {}", names.join(" and "))),
        );
    }
    edits
}

fn widened(steps: &mut Steps, buffer: &str, width: i64) -> bool {
    let Some(at) = steps.only("split", buffer, "f") else { return false };
    let is_plain = steps.0[at].results == ["u", "t"];
    let Some(order) = steps.only("reorder", buffer, "t").filter(|_| is_plain) else { return false };
    let v = LoopRef::new(buffer, "v");
    steps.0[order].args.push(Argument::Loop(v.clone()));
    let split = Call::new("split").target(&LoopRef::new(buffer, "f")).int(width).gives(["f", "v"]);
    steps.0.insert(at, split);
    let end = steps.before_writing_out();
    steps.0.insert(end, Call::new("vectorize").target(&v));
    let Some(source) = steps.staging(buffer).and_then(|s| steps.0[s].word_at(0).ok().map(str::to_string))
    else {
        return false;
    };
    steps.specialize(&[format!("ld{}%{width}", source.to_ascii_lowercase())]);
    true
}

/// The result stored by 16 bytes at a time.
fn wide_stores(steps: &Steps, facts: &Facts) -> Option<Edit> {
    let width = 16 / facts.bytes.max(1);
    let label = steps.main_label()?;
    let factors = steps.factors(&label, "j");
    let (last, factor) = *factors.last()?;
    if width < 2 || factor % width != 0 || steps.0[last].results.get(1) != Some(&"j".to_string()) {
        return None;
    }
    let order = steps
        .about("reorder", &label, "by")
        .first()
        .copied()
        .or_else(|| steps.about("reorder", &label, "bx").first().copied())?;
    let (j, v) = (LoopRef::new(&label, "j"), LoopRef::new(&label, "v"));
    let mut with = steps.clone();
    let place = with.0[order].args.iter().position(|a| *a == Argument::Loop(j.clone()))?;
    with.0[order].args.insert(place + 1, Argument::Loop(v.clone()));
    with.0.insert(last + 1, Call::new("split").target(&j).int(width).gives(["j", "v"]));
    let end = with.before_writing_out();
    with.0.insert(end, Call::new("vectorize").target(&v));
    with.specialize(&[format!("ld{}%{width}", label.to_ascii_lowercase())]);
    Some(with.edit(Idea::Width, format!("store {width} elements of {label} at a time")))
}

/// Sums in more or fewer parts.
fn numbers_of_parts(steps: &Steps) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (at, call) in steps.0.iter().enumerate().filter(|(_, c)| c.name == "split_reduce") {
        let Ok(parts) = call.int_at(1) else { continue };
        for other in [2 * parts, parts / 2] {
            if other >= 2 {
                let mut with = steps.clone();
                with.set_int(at, 1, other);
                edits.push(with.edit(Idea::Parts, format!("sums in {other} parts instead of {parts}")));
            }
        }
    }
    edits
}

/// Tiles of another size: in words, and for each split that changes its place, its factor and what that becomes.
type Resized = (String, Vec<(usize, i64, i64)>);

/// Tiles twice or half as large, along an axis of the result or of the sum.
fn tiles(steps: &Steps) -> Vec<Edit> {
    let Some(label) = steps.main_label() else { return Vec::new() };
    let mut edits = Vec::new();
    for (about, changes) in of_the_result(steps, &label) {
        edits.extend(resized(steps, &label, &changes).map(|with| with.edit(Idea::Tiles, about)));
    }
    for (about, changes) in of_the_sum(steps) {
        edits.extend(resized(steps, &label, &changes).map(|with| with.edit(Idea::Depth, about)));
    }
    edits
}

/// Other tiles of rows and columns, of a block or of a thread or of both.
fn of_the_result(steps: &Steps, label: &str) -> Vec<Resized> {
    let mut out = Vec::new();
    for (axis, what) in [("i", "rows"), ("j", "columns")] {
        let factors = steps.factors(label, axis);
        let twice = |part: &[(usize, i64)]| part.iter().map(|(at, f)| (*at, *f, 2 * f)).collect();
        let half = |part: &[(usize, i64)]| part.iter().map(|(at, f)| (*at, *f, f / 2)).collect();
        let Some((_, block)) = factors.first() else { continue };
        let (more, fewer) = (2 * block, block / 2);
        if let [_, of_a_thread @ ..] = &factors[..]
            && !of_a_thread.is_empty()
        {
            out.push((format!("threads of twice as many {what}, in blocks of {more}"), twice(&factors)));
            out.push((format!("threads of twice as many {what}, fewer of them"), twice(of_a_thread)));
            out.push((format!("threads of half as many {what}, more of them"), half(of_a_thread)));
            out.push((format!("threads of half as many {what}, in blocks of {fewer}"), half(&factors)));
        }
        out.push((
            format!("blocks of {more} {what} instead of {block}, of more threads"),
            twice(&factors[..1]),
        ));
        out.push((
            format!("blocks of {fewer} {what} instead of {block}, of fewer threads"),
            half(&factors[..1]),
        ));
    }
    out
}

/// Steps of more or fewer terms.
fn of_the_sum(steps: &Steps) -> Vec<Resized> {
    let mut out = Vec::new();
    for label in summed_loops(steps) {
        for (at, depth) in steps.factors(&label, "k").into_iter().take(1) {
            for other in [2 * depth, depth / 2, 4 * depth] {
                out.push((format!("steps of {other} terms instead of {depth}"), vec![(at, depth, other)]));
            }
        }
    }
    out
}

/// The steps with other factors, and what follows from them; `None` for tiles and blocks that nobody can have.
fn resized(steps: &Steps, label: &str, changes: &[(usize, i64, i64)]) -> Option<Steps> {
    let mut with = steps.clone();
    for (at, _, to) in changes {
        if *to < 1 {
            return None;
        }
        with.set_int(*at, 1, *to);
    }
    // The outermost split of an axis is what its size has to be a multiple of.
    if let Some((at, from, to)) = changes.first()
        && let Ok(target) = steps.0[*at].loop_at(0)
        && steps.factors(&target.label, &target.name).first().is_some_and(|(first, _)| first == at)
    {
        let size = match target.name.as_str() {
            "i" => "M",
            "j" => "N",
            _ => "K",
        };
        with.respecialize(size, *from, *to);
    }
    // Copies are done by all threads of the block.
    if let (Some(before), Some(after)) = (steps.threads(label), with.threads(label))
        && before != after
    {
        if !(32..=1024).contains(&after) {
            return None;
        }
        for call in with.0.iter_mut().filter(|c| c.name == "split" && c.int_at(1) == Ok(before)) {
            if call.loop_at(0).is_ok_and(|l| l.label != label && l.name == "f") {
                call.args[1] = Argument::Int(after);
            }
        }
    }
    Some(with)
}

/// The labels whose loop over the terms of the sum is split.
fn summed_loops(steps: &Steps) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for call in steps.0.iter().filter(|c| c.name == "split") {
        if let Ok(target) = call.loop_at(0)
            && target.name == "k"
            && !labels.contains(&target.label)
        {
            labels.push(target.label);
        }
    }
    labels
}

/// The loop over the terms of the sum written out in part, where it is one loop.
fn unrolling(steps: &Steps) -> Vec<Edit> {
    if !summed_loops(steps).is_empty() {
        return Vec::new();
    }
    [4, 8]
        .into_iter()
        .map(|times| {
            let mut with = steps.clone();
            let k = LoopRef::new("acc", "k");
            with.0.push(Call::new("split").target(&k).int(times).gives(["ko", "ki"]));
            with.0.push(Call::new("unroll").target(&LoopRef::new("acc", "ki")));
            with.specialize(&[format!("K%{times}")]);
            with.edit(Idea::Unrolling, format!("write out {times} steps of the sum"))
        })
        .collect()
}

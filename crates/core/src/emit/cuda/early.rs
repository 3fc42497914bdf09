//! Launches that begin before what was launched before them has ended: who waits, who lets others begin, and what is asked for meanwhile.

use super::Neighbours;
use super::body::Body;
use super::spelling::launch as between;
use super::text::Strength;
use crate::ir::{AskedBy, Asks, Buffer, Io, Lets, Space};

impl Body<'_> {
    /// Lets the launch behind begin, and waits for the one before before anything is read or written. Whoever waits for this one then waits
    /// for what it waits for too: no block ends without having waited.
    ///
    /// The last of several launches waits first unless the program says otherwise. Blocks of the next call, which all wait, may else be given to
    /// multiprocessors while the first launch of this one still has them, by twos where they find room: a product that ran at one block a
    /// multiprocessor took more than twice as long then (bench/results/h200-2026-11-29-boxes-and-calls-that-begin-early.txt). A launch alone waits first
    /// where the program says that none lets others begin: blocks of the next call that fill some multiprocessors, since there is room for them beside
    /// this one's, leave others without any.
    pub(super) fn neighbours(&mut self, neighbours: Neighbours) {
        let early = neighbours.calls;
        let lets_before_it_waits = match early.map(|early| early.lets).unwrap_or_default() {
            Lets::Most => neighbours.after || !neighbours.before,
            Lets::None => false,
            Lets::All => true,
        };
        let lets = neighbours.lets_next_begin();
        if lets && lets_before_it_waits {
            self.let_next_begin();
        }
        if let Some(asks) = early.and_then(|early| early.asks)
            && !neighbours.before
        {
            self.ask(asks);
        }
        if neighbours.waits() {
            self.prelude.require(&between::WAIT_FOR_LAUNCH_BEFORE);
            self.line("wait_for_launch_before();");
        }
        if lets && !lets_before_it_waits {
            self.let_next_begin();
        }
    }

    fn let_next_begin(&mut self) {
        self.prelude.require(&between::LET_NEXT_LAUNCH_BEGIN);
        self.line("let_next_launch_begin();");
    }

    /// Asks for the first bytes of each input.
    fn ask(&mut self, asks: Asks) {
        let (helper, ask) = match asks.by {
            AskedBy::Bulk => (&between::ASK_BY_BULK, "ask_by_bulk"),
            AskedBy::Lines => (&between::ASK_BY_LINES, "ask_by_lines"),
        };
        self.prelude.require(helper);
        let inputs = self.unit.program.tensors().filter(|tensor| tensor.space == Space::Param(Io::In));
        for input in inputs.cloned().collect::<Vec<_>>() {
            let (span, bytes) = (self.elements_between(&input), input.dtype.bytes());
            self.used.insert(input.sym.clone());
            let name = self.names.of(&input.sym).to_string();
            self.line(format!("{ask}({name}, min({span}*{bytes}, {}LL));", asks.kib << 10));
        }
    }

    /// How many elements lie from the first one of a tensor to its last.
    fn elements_between(&mut self, tensor: &Buffer) -> String {
        let extents: Vec<String> =
            tensor.dims.iter().map(|dim| self.index(&dim.extent).at_least(Strength::Unary)).collect();
        match (&tensor.row_stride, &extents[..]) {
            (Some(stride), [rows, columns]) => {
                self.used.insert(stride.clone());
                let stride = self.names.of(stride);
                format!("(({rows} - 1LL)*{stride} + {columns})")
            }
            _ => format!("1LL*{}", extents.join("*")),
        }
    }
}

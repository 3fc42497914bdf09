//! The text form of programs, read.
//!
//! ```text
//! program NAME(params) [assume cond, ...] [begins_early [asks N KiB bulk|lines] [lets none|all]] [fetches BYTES] { host* }
//! param    n: size | G: launch | beta0: flag | alpha: f32 | A: in|out|inout f32[dims; ld] [align BYTES]
//! host     const X = e | alloc ws: f32[dims] global | if cond {..} | launch
//! launch   for b in block.x(E) [ordered] { ... }
//! stmt     for i in [unroll|vector|interleave] lo..hi [step s] [counting n] {..}   for d in unroll [16, 8] {..}
//!          for k in part(s, S) lo..hi {..}         for (u, v) in tasks(E1, E2) share(g, G) {..}
//!          for x in threads(E @ P) {..}            for (i, j [by n]) in own R[w, :, :] {..}
//!          roles producer 0..128 regs 40, ...      on producer {..}
//!          if cond {..} else {..} | let x = index | lhs = e | lhs += e | lhs max= e | atomic lhs += e
//!          instruction(windows, scalars) [-> full[n]]
//!          barrier | cp.commit | cp.wait n | wgmma.fence | wgmma.commit | wgmma.wait n
//!          bulk.commit | bulk.wait n | bulk.wait_read n | fence.async
//!          alloc full: mbar ring D count C | arrive(full[n] [, tx bytes]) | await(full[n])
//! alloc    x: f32[16@16, 8] reg [frag D16x8] [split] [on role] | x: bf16[128, 32] shared [split] [layout (r, c) => e]
//! ```
//!
//! Expressions of data have `+ - * /`, `max`, `min`, `conj(z)`, `times_i(z)` (the product with the imaginary unit),
//! conversions such as `f32(x)` and choices `cond ? x : y`.
//!
//! `for a in R, b in S {..}` is short for one loop directly inside the other. `#` starts a comment. Constants
//! declared with `const` are replaced by their values.

mod expr;
mod lexer;
mod statement;

use expr::{Entity, Expr, Node};
use lexer::{Kind, Token};

use super::buffer::{ALIGNMENT, Buffer, Dim, Io, Space};
use super::early::{AskedBy, Asks, Early, Lets};
use super::program::{Param, ParamKind, Program};
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Cond, Index};
use crate::sym::Sym;

/// Reads a program.
///
/// # Errors
/// The first thing that is not understood, with line and column.
pub fn program(text: &str) -> Result<Program, Diagnosis> {
    program_with(text, &[])
}

/// Reads a program whose `const` declarations of the given names take the given values instead of their own.
///
/// # Errors
/// As [`program`].
pub fn program_with(text: &str, constants: &[(&str, i64)]) -> Result<Program, Diagnosis> {
    let mut parser = Parser::new(text)?;
    parser.overrides = constants.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let mut program = parser.program()?;
    program.doc = leading_comment(text);
    Ok(program)
}

fn leading_comment(text: &str) -> Vec<String> {
    text.lines().map_while(|l| l.trim_start().strip_prefix('#')).map(|l| l.trim().to_string()).collect()
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    names: Vec<(String, Entity)>,
    overrides: Vec<(String, i64)>,
}

impl Parser {
    fn new(text: &str) -> Result<Parser, Diagnosis> {
        Ok(Parser { tokens: lexer::tokens(text)?, at: 0, depth: 0, names: Vec::new(), overrides: Vec::new() })
    }

    fn program(&mut self) -> Result<Program, Diagnosis> {
        self.expect_name("program")?;
        let name = self.name("the name of the program")?;
        self.expect("(")?;
        let params = self.params()?;
        let mut assumes = Vec::new();
        if self.take_name("assume") {
            loop {
                let e = self.expr()?;
                assumes.push(self.cond(&e)?);
                if !self.take(",") {
                    break;
                }
            }
        }
        let begins_early = if self.take_name("begins_early") { Some(self.early()?) } else { None };
        let fetches = if self.take_name("fetches") { Some(self.constant_expr()?) } else { None };
        let body = self.body()?;
        if self.peek() != &Kind::End {
            return Err(self.error("expected the end of the text after the program"));
        }
        Ok(Program { name, doc: Vec::new(), params, assumes, begins_early, fetches, body })
    }

    /// How calls overlap, behind the word for it.
    fn early(&mut self) -> Result<Early, Diagnosis> {
        let mut early = Early::default();
        if self.take_name("asks") {
            let kib = self.constant_expr()?;
            if !(1..=Asks::MOST_KIB).contains(&kib) {
                return Err(self.error(format!("expected 1 to {} KiB to ask for", Asks::MOST_KIB)));
            }
            self.expect_name("KiB")?;
            early.asks = Some(Asks { kib, by: AskedBy::by_name(&self.name("by bulk or by lines")?)? });
        }
        if self.take_name("lets") {
            early.lets = Lets::by_name(&self.name("which launches")?)?;
        }
        Ok(early)
    }

    /// Parameters may refer to sizes and row strides declared anywhere in the list, so names come first.
    fn params(&mut self) -> Result<Vec<Param>, Diagnosis> {
        struct Tensor {
            io: Io,
            dtype: DType,
            dims: Vec<Expr>,
            stride: Option<Sym>,
            align: i64,
        }
        struct Raw {
            name: Expr,
            kind: Option<ParamKind>,
            tensor: Option<Tensor>,
        }
        let mut raw = Vec::new();
        while !self.take(")") {
            let name = self.expr()?;
            self.expect(":")?;
            raw.push(if let Some(io) = self.io() {
                let dtype = self.dtype()?;
                self.expect("[")?;
                let mut dims = vec![self.expr()?];
                while self.take(",") {
                    dims.push(self.expr()?);
                }
                let mut stride = None;
                if self.take(";") {
                    let sym = Sym::new(&self.name("the name of a row stride")?);
                    self.names.push((sym.name().into(), Entity::Var(sym.clone())));
                    stride = Some(sym);
                }
                self.expect("]")?;
                let align = if self.take_name("align") { self.constant_expr()? } else { ALIGNMENT };
                Raw { name, kind: None, tensor: Some(Tensor { io, dtype, dims, stride, align }) }
            } else {
                Raw { name, kind: Some(self.param_kind()?), tensor: None }
            });
            let last = raw.last().expect("just pushed");
            let Node::Name(text) = &last.name.node else { return self.fail(&last.name, "expected a name") };
            let sym = Sym::new(text);
            let entity = match (&last.kind, &last.tensor) {
                (Some(ParamKind::Flag), _) => Entity::Flag(sym),
                (Some(ParamKind::Scalar(_)), _) => Entity::Scalar(sym),
                (None, Some(Tensor { dims, .. })) => Entity::Buffer(sym, dims.len()),
                _ => Entity::Var(sym),
            };
            self.declare(&last.name, text.clone(), entity)?;
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        let mut params = Vec::new();
        for Raw { name, kind, tensor } in raw {
            let Node::Name(text) = &name.node else { return self.fail(&name, "expected a name") };
            let found = self.names.iter().find(|(n, _)| n == text).map(|(_, e)| e.clone());
            let Some(Entity::Var(sym) | Entity::Flag(sym) | Entity::Scalar(sym) | Entity::Buffer(sym, _)) =
                found
            else {
                return self.fail(&name, "expected a parameter");
            };
            let kind = match (kind, tensor) {
                (Some(kind), _) => kind,
                (None, Some(Tensor { io, dtype, dims, stride, align })) => {
                    let dims = dims
                        .iter()
                        .map(|d| Ok(Dim::new(self.index(d)?)))
                        .collect::<Result<_, Diagnosis>>()?;
                    let mut buffer = Buffer::new(sym.clone(), dtype, dims, Space::Param(io));
                    buffer.row_stride = stride;
                    buffer.align = align;
                    ParamKind::Tensor(buffer)
                }
                (None, None) => return self.fail(&name, "expected a kind of parameter"),
            };
            params.push(Param { sym, kind });
        }
        Ok(params)
    }

    fn param_kind(&mut self) -> Result<ParamKind, Diagnosis> {
        for (word, kind) in
            [("size", ParamKind::Size), ("launch", ParamKind::Launch), ("flag", ParamKind::Flag)]
        {
            if self.take_name(word) {
                return Ok(kind);
            }
        }
        Ok(ParamKind::Scalar(self.dtype()?))
    }

    fn io(&mut self) -> Option<Io> {
        let io = [("in", Io::In), ("out", Io::Out), ("inout", Io::InOut)];
        io.into_iter().find_map(|(word, io)| self.take_name(word).then_some(io))
    }

    fn dtype(&mut self) -> Result<DType, Diagnosis> {
        let text = self.name("an element type")?;
        text.parse().map_err(|e: Diagnosis| {
            self.back();
            e.at(self.place())
        })
    }

    fn declare(&mut self, at: &Expr, name: String, entity: Entity) -> Result<(), Diagnosis> {
        if self.names.iter().any(|(n, _)| *n == name) {
            return self.fail(at, format!("`{name}` is declared twice"));
        }
        self.names.push((name, entity));
        Ok(())
    }

    /// Makes a symbol for a name that is declared from here to the end of the enclosing body.
    fn bind(&mut self, entity: fn(Sym) -> Entity) -> Result<Sym, Diagnosis> {
        let sym = Sym::new(&self.name("a name")?);
        self.names.push((sym.name().into(), entity(sym.clone())));
        Ok(sym)
    }

    fn index_expr(&mut self) -> Result<Index, Diagnosis> {
        let e = self.expr()?;
        self.index(&e)
    }

    fn constant_expr(&mut self) -> Result<i64, Diagnosis> {
        let e = self.expr()?;
        self.constant(&e)
    }

    fn cond_expr(&mut self) -> Result<Cond, Diagnosis> {
        let e = self.expr()?;
        self.cond(&e)
    }

    /// A comma-separated list up to `close`; a comma may stand before it.
    fn list<T>(
        &mut self,
        close: &'static str,
        mut one: impl FnMut(&mut Parser) -> Result<T, Diagnosis>,
    ) -> Result<Vec<T>, Diagnosis> {
        let mut out = Vec::new();
        while !self.take(close) {
            out.push(one(self)?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(out)
    }

    fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    fn peek_mark(&self, mark: &str) -> bool {
        matches!(self.peek(), Kind::Mark(m) if *m == mark)
    }

    fn peek_name(&self, name: &str) -> bool {
        matches!(self.peek(), Kind::Name(n) if n == name)
    }

    fn advance(&mut self) -> Kind {
        let kind = self.tokens[self.at].kind.clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        kind
    }

    fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = self.peek_mark(mark);
        if found {
            self.advance();
        }
        found
    }

    fn take_name(&mut self, name: &str) -> bool {
        let found = self.peek_name(name);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, mark: &str) -> Result<(), Diagnosis> {
        if self.take(mark) {
            Ok(())
        } else {
            Err(self.error(format!("expected `{mark}`, found `{}`", self.peek().text())))
        }
    }

    fn expect_name(&mut self, name: &str) -> Result<(), Diagnosis> {
        if self.take_name(name) {
            return Ok(());
        }
        Err(self.error(format!("expected `{name}`, found `{}`", self.peek().text())))
    }

    fn name(&mut self, what: &str) -> Result<String, Diagnosis> {
        if let Kind::Name(name) = self.peek() {
            let name = name.clone();
            self.advance();
            return Ok(name);
        }
        Err(self.error(format!("expected {what}, found `{}`", self.peek().text())))
    }

    fn here(&self) -> (u32, u32) {
        (self.tokens[self.at].line, self.tokens[self.at].column)
    }

    fn place(&self) -> String {
        let (line, column) = self.here();
        format!("line {line}:{column}")
    }

    fn error(&self, what: impl Into<String>) -> Diagnosis {
        Diagnosis::new(what).at(self.place())
    }
}

#[cfg(test)]
mod tests;

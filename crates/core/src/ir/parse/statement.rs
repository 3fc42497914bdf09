//! Statements, read.

use super::Parser;
use super::expr::{Entity, Expr, Item, Node};
use super::lexer::Kind;
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::buffer::{Buffer, Dim, Ring, Space};
use crate::ir::statement::{
    Assign, AssignOp, Axis, For, If, Instruction, Mode, On, Operand, Own, Range, Role, Stmt, Sync, Tasks,
};
use crate::ir::value::Reduction;
use crate::layout::{Fragment, Layout};
use crate::sym::Sym;

/// Deeper nesting than any program needs; keeps hostile text from exhausting the stack.
const DEEPEST: u32 = 48;

impl Parser {
    /// `{ stmt* }`; names declared inside end with it.
    pub(super) fn body(&mut self) -> Result<Vec<Stmt>, Diagnosis> {
        self.expect("{")?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("statements are nested too deeply"));
        }
        let names = self.names.len();
        let mut body = Vec::new();
        while !self.take("}") {
            self.statement(&mut body)?;
        }
        self.names.truncate(names);
        self.depth -= 1;
        Ok(body)
    }

    fn statement(&mut self, body: &mut Vec<Stmt>) -> Result<(), Diagnosis> {
        let word = match self.peek() {
            Kind::Name(word) => word.clone(),
            other => return Err(self.error(format!("expected a statement, found `{}`", other.text()))),
        };
        self.advance();
        let stmt = match word.as_str() {
            "const" => return self.constant_declaration(),
            "for" => self.for_loop()?,
            "if" => self.choice()?,
            "let" => {
                let name = self.name("a name")?;
                self.expect("=")?;
                let value = self.index_expr()?;
                let sym = Sym::new(&name);
                self.names.push((name, Entity::Var(sym.clone())));
                Stmt::Let(sym, value)
            }
            "alloc" => self.alloc()?,
            "roles" => self.roles()?,
            "on" => {
                let role = self.role()?;
                Stmt::On(On { role, body: self.body()?.into() })
            }
            "atomic" => self.assign(true)?,
            "arrive" | "await" => self.phase(&word)?,
            "barrier" | "cp" | "wgmma" | "bulk" | "fence" => Stmt::Sync(self.sync(&word)?),
            _ => {
                self.back();
                return self.call_or_assign(body);
            }
        };
        body.push(stmt);
        Ok(())
    }

    fn constant_declaration(&mut self) -> Result<(), Diagnosis> {
        let name = self.name("the name of a constant")?;
        self.expect("=")?;
        let value = self.constant_expr()?;
        let value = self.overrides.iter().find(|(n, _)| *n == name).map_or(value, |(_, v)| *v);
        self.names.push((name, Entity::Const(value)));
        Ok(())
    }

    /// One or several loops, then the body of the innermost.
    fn for_loop(&mut self) -> Result<Stmt, Diagnosis> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("loops are nested too deeply"));
        }
        let names = self.names.len();
        let stmt = if self.take("(") {
            let mut run = None;
            let vars = self.list(")", |p| {
                if run.is_some() {
                    return Err(p.error("only the last variable goes by runs"));
                }
                let name = p.name("a loop variable")?;
                run = if p.take_name("by") { Some(p.constant_expr()?) } else { None };
                if run.is_some_and(|run| run < 1) {
                    return Err(p.error("a run has at least one element"));
                }
                Ok(name)
            })?;
            self.expect_name("in")?;
            self.box_loop(vars, run)?
        } else {
            let name = self.name("a loop variable")?;
            self.expect_name("in")?;
            let (mode, range) = self.range()?;
            let var = Sym::new(&name);
            self.names.push((name, Entity::Var(var.clone())));
            let counting = if self.take_name("counting") { Some(self.bind(Entity::Var)?) } else { None };
            let body = if self.take(",") { vec![self.for_loop()?] } else { self.body()? };
            Stmt::For(For { var, mode, range, counting, body: body.into() })
        };
        // The ordinal outlives its loop: afterwards it is the number of iterations so far.
        let ordinal = match &stmt {
            Stmt::For(For { counting: Some(n), .. }) => Some(n.clone()),
            _ => None,
        };
        self.names.truncate(names);
        self.names.extend(ordinal.map(|n| (n.name().to_string(), Entity::Var(n))));
        self.depth -= 1;
        Ok(stmt)
    }

    fn box_loop(&mut self, names: Vec<String>, run: Option<i64>) -> Result<Stmt, Diagnosis> {
        let vars: Vec<Sym> = names.iter().map(|n| Sym::new(n)).collect();
        let entities = vars.iter().map(|v| (v.name().to_string(), Entity::Var(v.clone())));
        if self.take_name("own") {
            let window = self.window_expr()?;
            let lane_base = self.take_name("lane_base");
            self.names.extend(entities);
            let (run, body) = (run.unwrap_or(1), self.body()?.into());
            return Ok(Stmt::Own(Own { vars, run, window, lane_base, body }));
        }
        if run.is_some() {
            return Err(self.error("only elements that are owned go by runs"));
        }
        self.expect_name("tasks")?;
        self.expect("(")?;
        let extents = self.list(")", Parser::index_expr)?;
        if extents.len() != vars.len() {
            return Err(self.error(format!("{} variables for {} extents", vars.len(), extents.len())));
        }
        self.expect_name("share")?;
        self.expect("(")?;
        let start = self.index_expr()?;
        self.expect(",")?;
        let stride = self.index_expr()?;
        self.expect(")")?;
        self.names.extend(entities);
        Ok(Stmt::Tasks(Tasks { vars, extents, start, stride, body: self.body()?.into() }))
    }

    fn min_blocks(&mut self) -> Result<i64, Diagnosis> {
        let blocks = self.constant_expr()?;
        if !(0..=Mode::MOST_MIN_BLOCKS).contains(&blocks) {
            return Err(self.error(Mode::about_min_blocks()));
        }
        Ok(blocks)
    }

    fn range(&mut self) -> Result<(Mode, Range), Diagnosis> {
        if self.take_name("block") {
            self.expect(".")?;
            let axis = match self.name("x, y or z")?.as_str() {
                "x" => Axis::X,
                "y" => Axis::Y,
                "z" => Axis::Z,
                _ => return Err(self.error("a grid has the axes x, y and z")),
            };
            self.expect("(")?;
            let range = Range::upto(self.index_expr()?);
            self.expect(")")?;
            let ordered = self.take_name("ordered");
            let min_blocks = if self.take_name("min_blocks") { Some(self.min_blocks()?) } else { None };
            return Ok((Mode::Block { axis, ordered, min_blocks }, range));
        }
        if self.take_name("threads") {
            self.expect("(")?;
            let count = self.constant_expr()?;
            self.expect("@")?;
            let pitch = self.constant_expr()?;
            self.expect(")")?;
            if count < 1 || pitch < 1 {
                return Err(self.error("a thread loop needs at least one range of at least one thread"));
            }
            return Ok((Mode::Threads { pitch }, Range::upto(count)));
        }
        let modes = [("unroll", Mode::Unroll), ("vector", Mode::Vector), ("interleave", Mode::Interleave)];
        let mode =
            modes.into_iter().find_map(|(w, m)| self.take_name(w).then_some(m)).unwrap_or(Mode::Serial);
        if self.take("[") {
            return Ok((mode, Range::List(self.list("]", Parser::constant_expr)?)));
        }
        if self.peek_name("part") {
            self.advance();
            self.expect("(")?;
            let index = self.index_expr()?;
            self.expect(",")?;
            let parts = self.index_expr()?;
            self.expect(")")?;
            let (lo, hi) = self.bounds()?;
            return Ok((mode, Range::Part { index, parts, lo, hi }));
        }
        let (lo, hi) = self.bounds()?;
        let step = if self.take_name("step") { self.index_expr()? } else { Index::constant(1) };
        Ok((mode, Range::Span { lo, hi, step }))
    }

    fn bounds(&mut self) -> Result<(Index, Index), Diagnosis> {
        let lo = self.index_expr()?;
        self.expect("..")?;
        Ok((lo, self.index_expr()?))
    }

    fn choice(&mut self) -> Result<Stmt, Diagnosis> {
        let cond = self.cond_expr()?;
        let then = self.body()?;
        let otherwise = match self.take_name("else") {
            true if self.take_name("if") => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(self.error("conditions are nested too deeply"));
                }
                let inner = vec![self.choice()?];
                self.depth -= 1;
                inner
            }
            true => self.body()?,
            false => Vec::new(),
        };
        Ok(Stmt::If(If { cond, then: then.into(), otherwise: otherwise.into() }))
    }

    fn alloc(&mut self) -> Result<Stmt, Diagnosis> {
        let name = self.name("the name of a buffer")?;
        self.expect(":")?;
        let sym = Sym::new(&name);
        if self.take_name("mbar") {
            self.expect_name("ring")?;
            let depth = self.constant_expr()?;
            self.expect_name("count")?;
            let count = self.constant_expr()?;
            self.names.push((name, Entity::Ring(sym.clone())));
            return Ok(Stmt::AllocRing(Ring { sym, depth, count }));
        }
        let dtype = self.dtype()?;
        self.expect("[")?;
        let dims = self.list("]", Parser::dim)?;
        let space = match self.name("global, shared or reg")?.as_str() {
            "global" => Space::Global,
            "shared" => Space::Shared,
            "reg" => Space::Reg,
            other => {
                return Err(self
                    .error(format!("`{other}` is no memory"))
                    .instead("use global, shared or reg"));
            }
        };
        let mut buffer = Buffer::new(sym.clone(), dtype, dims, space);
        loop {
            if self.take_name("layout") {
                buffer.layout = Some(self.layout()?);
            } else if self.take_name("frag") {
                let fragment = self.name("the name of a fragment")?;
                buffer.fragment = Some(Fragment::by_name(&fragment).ok_or_else(|| {
                    let known: Vec<_> = Fragment::all().iter().map(|f| f.name).collect();
                    self.error(format!("unknown fragment `{fragment}`"))
                        .instead(format!("use one of {}", known.join(", ")))
                })?);
            } else if !buffer.split && self.take_name("split") {
                buffer.split = true;
            } else if buffer.role.is_none() && self.take_name("on") {
                buffer.role = Some(self.role()?);
            } else {
                break;
            }
        }
        self.names.push((name, Entity::Buffer(sym, buffer.dims.len())));
        Ok(Stmt::Alloc(buffer))
    }

    fn dim(&mut self) -> Result<Dim, Diagnosis> {
        let extent = self.index_expr()?;
        let pitch = if self.take("@") { Some(self.constant_expr()?) } else { None };
        Ok(Dim { extent, pitch })
    }

    fn layout(&mut self) -> Result<Layout, Diagnosis> {
        self.expect("(")?;
        let names = self.names.len();
        let axes = self.list(")", |p| p.bind(Entity::Var))?;
        self.expect("=>")?;
        let offset = self.index_expr()?;
        self.names.truncate(names);
        Ok(Layout { axes, offset })
    }

    fn roles(&mut self) -> Result<Stmt, Diagnosis> {
        let mut roles = Vec::new();
        loop {
            let sym = self.bind(Entity::Role)?;
            let lo = self.constant_expr()?;
            self.expect("..")?;
            let hi = self.constant_expr()?;
            let registers = if self.take_name("regs") { Some(self.constant_expr()?) } else { None };
            roles.push(Role { sym, lo, hi, registers });
            if !self.take(",") {
                return Ok(Stmt::Roles(roles));
            }
        }
    }

    fn role(&mut self) -> Result<Sym, Diagnosis> {
        let (line, column) = self.here();
        let name = self.name("the name of a role")?;
        self.named(&Expr { line, column, node: Node::Name(name.clone()) }, &name, "role")
    }

    fn sync(&mut self, word: &str) -> Result<Sync, Diagnosis> {
        if word == "barrier" {
            return Ok(Sync::Barrier);
        }
        self.expect(".")?;
        let what = self.name("what to do")?;
        let sync = match (word, what.as_str()) {
            ("cp", "commit") => Sync::CpCommit,
            ("cp", "wait") => Sync::CpWait(self.constant_expr()?),
            ("wgmma", "fence") => Sync::WgmmaFence,
            ("wgmma", "commit") => Sync::WgmmaCommit,
            ("wgmma", "wait") => Sync::WgmmaWait(self.constant_expr()?),
            ("bulk", "commit") => Sync::BulkCommit,
            ("bulk", "wait") => Sync::BulkWait(self.constant_expr()?),
            ("bulk", "wait_read") => Sync::BulkWaitRead(self.constant_expr()?),
            ("fence", "async") => Sync::FenceAsync,
            _ => return Err(self.error(format!("`{word}.{what}` is no synchronisation"))),
        };
        Ok(sync)
    }

    fn phase(&mut self, word: &str) -> Result<Stmt, Diagnosis> {
        self.expect("(")?;
        let (ring, ordinal) = self.ring_element()?;
        let mut bytes = None;
        if word == "arrive" && self.take(",") {
            self.expect_name("tx")?;
            bytes = Some(self.index_expr()?);
        }
        self.expect(")")?;
        Ok(match word {
            "arrive" => Stmt::Arrive { ring, ordinal, bytes },
            _ => Stmt::Await { ring, ordinal },
        })
    }

    fn ring_element(&mut self) -> Result<(Sym, Index), Diagnosis> {
        let e = self.expr()?;
        match &e.node {
            Node::Element(name, items) => match &items[..] {
                [Item::At(ordinal)] => Ok((self.named(&e, name, "ring")?, self.index(ordinal)?)),
                _ => self.fail(&e, "a ring has one ordinal"),
            },
            _ => self.fail(&e, "expected `ring[ordinal]`"),
        }
    }

    fn window_expr(&mut self) -> Result<crate::ir::Window, Diagnosis> {
        let e = self.expr()?;
        match &e.node {
            Node::Element(name, items) => self.window(&e, name, items),
            _ => self.fail(&e, "expected a window such as `acc[w, :, :]`"),
        }
    }

    fn call_or_assign(&mut self, body: &mut Vec<Stmt>) -> Result<(), Diagnosis> {
        let called = matches!(self.tokens.get(self.at + 1).map(|t| &t.kind), Some(Kind::Mark("(")));
        let stmt = if called { self.instruction()? } else { self.assign(false)? };
        body.push(stmt);
        Ok(())
    }

    fn instruction(&mut self) -> Result<Stmt, Diagnosis> {
        let name = self.name("an instruction")?;
        self.expect("(")?;
        let operands = self.list(")", |p| {
            let e = p.expr()?;
            match &e.node {
                Node::Element(name, items) => Ok(Operand::Window(p.window(&e, name, items)?)),
                _ => Ok(Operand::Scalar(p.index(&e)?)),
            }
        })?;
        let signal = if self.take("->") { Some(self.ring_element()?) } else { None };
        Ok(Stmt::Instruction(Instruction { name: name.into(), operands, signal }))
    }

    fn assign(&mut self, atomic: bool) -> Result<Stmt, Diagnosis> {
        let (line, column) = self.here();
        let name = self.name("a buffer")?;
        self.expect("[")?;
        let items = self.list("]", Parser::item)?;
        let at = Expr { line, column, node: Node::Name(name.clone()) };
        let target = self.access(&at, &name, &items)?;
        let op = match self.advance() {
            Kind::Mark("=") => AssignOp::Store,
            Kind::Mark("+=") => AssignOp::Reduce(Reduction::Sum),
            Kind::Mark("max=") => AssignOp::Reduce(Reduction::Max),
            Kind::Mark("min=") => AssignOp::Reduce(Reduction::Min),
            other => {
                self.back();
                return Err(
                    self.error(format!("expected `=`, `+=`, `max=` or `min=`, found `{}`", other.text()))
                );
            }
        };
        if atomic && op == AssignOp::Store {
            return self.fail(&at, "only a reduction can be atomic");
        }
        let e = self.expr()?;
        let value = self.value(&e)?;
        Ok(Stmt::Assign(Assign { target, op, atomic, value }))
    }
}

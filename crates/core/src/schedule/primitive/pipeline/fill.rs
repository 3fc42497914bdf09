//! Fills that a copy engine can take over: what a tile holds is copied from a matrix as it lies there, and is 0 where the tile hangs over.

use crate::index::{Cond, Index};
use crate::instr::{self, Behaviour, Extent, Place as Where, Record};
use crate::ir::{ALIGNMENT, Access, AssignOp, Buffer, Span, Stmt, Window};
use crate::schedule::facts::Facts;
use crate::schedule::rewrite::{Place, covers, guard_bounds, guarded_load};
use crate::sym::Sym;

/// A fill that is loops around one copy.
pub(super) struct Fill {
    /// The buffer that it fills.
    pub tile: Buffer,
    /// Where that is stored to, in terms of the loops.
    pub target: Vec<Index>,
    pub source: Buffer,
    /// What is read of it.
    pub access: Access,
    /// The variables of the loops.
    pub loops: Vec<Sym>,
    /// Whether all of it is known to be there.
    pub whole: bool,
}

impl Fill {
    /// What a statement fills, if that is all that the matrix has and zeros where it has nothing; why it is not.
    pub fn of(stmt: &Stmt, place: &Place, facts: &Facts) -> Result<Fill, String> {
        let (mut at, mut loops, mut inside) = (stmt, Vec::new(), facts.clone());
        let assign = loop {
            match at {
                Stmt::For(l) => {
                    inside.enter(l);
                    loops.push(l.var.clone());
                    let [inner] = &l.body[..] else {
                        return Err("a fill holds more than one statement".into());
                    };
                    at = inner;
                }
                Stmt::Assign(a) => break a,
                _ => return Err("a fill is more than loops around one copy".into()),
            }
        };
        let name = &assign.target.buffer;
        let buffers = place.program.buffers();
        let tile = buffers.get(name).ok_or("a tile is not known")?;
        let (cond, access, otherwise) = guarded_load(&assign.value)
            .filter(|_| assign.op == AssignOp::Store)
            .ok_or_else(|| format!("`{name}` is filled by more than a copy"))?;
        let source = buffers.get(&access.buffer).ok_or("a matrix is not known")?;
        if !covers(std::slice::from_ref(stmt), tile) {
            return Err(format!("it could not be shown that all of `{name}` is filled"));
        }
        if cond != Cond::TRUE && otherwise != 0.0 {
            return Err(format!("`{name}` is filled with {otherwise} where it hangs over, not with 0"));
        }
        // Inside the matrix the copy must not leave anything out.
        inside.assume(&guard_bounds(access, source, &Facts::default()));
        if !inside.proves(&cond) {
            return Err(format!("`{name}` is not filled with all that the matrix has"));
        }
        Ok(Fill {
            tile: (*tile).clone(),
            target: assign.target.index.clone(),
            source: (*source).clone(),
            access: access.clone(),
            loops,
            whole: cond == Cond::TRUE,
        })
    }

    /// The box of the matrix that the tile holds, of these extents: each index of the matrix is that of the tile and a start.
    pub fn window(&self, extents: &[i64]) -> Result<Window, String> {
        let Fill { tile, source, target, access, loops, .. } = self;
        if extents.len() != 2 || target.len() != 2 || source.dims.len() != 2 {
            return Err(format!("`{}` is no box of a matrix", tile.sym));
        }
        let start = |(from, to): (&Index, &Index)| {
            let start = from - to;
            let fixed = !loops.iter().any(|v| start.mentions(v));
            fixed
                .then_some(start)
                .ok_or_else(|| format!("`{}` is stored in another order than it is read", tile.sym))
        };
        let starts = access.index.iter().zip(target).map(start).collect::<Result<Vec<_>, _>>()?;
        let dims = starts.into_iter().zip(extents).map(|(start, n)| Span::Slice(start, *n)).collect();
        Ok(Window { buffer: source.sym.clone(), dims })
    }

    /// The instruction that copies a box of these extents to such a place in shared memory.
    pub fn load(&self, extents: &[i64], place: Where) -> Result<&'static Record, String> {
        let fits = |r: &&Record| {
            let wanted = r.operands.first().and_then(|o| o.window.as_ref());
            r.behaviour == Behaviour::BulkLoad
                && wanted.is_some_and(|w| {
                    w.place == place && w.dtype == Some(self.tile.dtype) && shape_fits(w.shape, extents)
                })
        };
        instr::all()
            .find(fits)
            .ok_or_else(|| format!("there is no bulk copy of {extents:?} elements of {}", self.tile.dtype))
    }

    /// Whether rows of the matrix start where the tensor memory accelerator wants them: at multiples of 16 bytes.
    ///
    /// # Errors
    /// That it is not known.
    pub fn rows_at_pieces(&self, facts: &Facts) -> Result<(), String> {
        let Fill { source, .. } = self;
        let stride = source.row_stride.as_ref().map_or_else(|| source.dims[1].extent.clone(), Index::var);
        let starts = source.is_global() && source.align % ALIGNMENT == 0;
        if starts && facts.is_multiple(&stride, ALIGNMENT / source.dtype.bytes()) {
            return Ok(());
        }
        Err(format!("rows of `{}` may not start at multiples of {ALIGNMENT} bytes", source.sym))
    }
}

fn shape_fits(wanted: &[Extent], extents: &[i64]) -> bool {
    wanted.len() == extents.len()
        && wanted.iter().zip(extents).all(|(w, n)| match w {
            Extent::Fixed(f) => f == n,
            Extent::Multiple(of, most) => n % of == 0 && n <= most,
            Extent::Same(_) => false,
        })
}

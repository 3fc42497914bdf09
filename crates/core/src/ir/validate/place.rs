//! Where a statement stands, in words: the path of the loops around it and its first line.

use crate::ir::print::{Scope, headline};
use crate::ir::walk;
use crate::ir::{Program, Stmt};

/// `by.bx.ko: barrier`: the loops around `stmt`, outermost first, and its first line. `stmt` must be part of `program`.
///
/// Built only when something is wrong, so it may walk the program again from the start.
pub fn of(program: &Program, stmt: &Stmt) -> String {
    let mut scope = Scope::default();
    for param in &program.params {
        scope.bind(&param.sym);
    }
    for stride in program.tensors().filter_map(|t| t.row_stride.as_ref()) {
        scope.bind(stride);
    }
    find(&program.body, stmt, &mut scope, &mut Vec::new()).unwrap_or_default()
}

fn find(stmts: &[Stmt], wanted: &Stmt, scope: &mut Scope, path: &mut Vec<String>) -> Option<String> {
    let visible = scope.len();
    for stmt in stmts {
        if std::ptr::eq(stmt, wanted) {
            let line = headline(stmt, scope);
            return Some(if path.is_empty() { line } else { format!("{}: {line}", path.join(".")) });
        }
        let outside = scope.len();
        let depth = path.len();
        for sym in binders(stmt) {
            let name = scope.bind(sym);
            if matches!(stmt, Stmt::For(_) | Stmt::Tasks(_) | Stmt::Own(_)) {
                path.push(name);
            }
        }
        if let Stmt::On(on) = stmt {
            path.push(on.role.to_string());
        }
        for body in walk::bodies(stmt) {
            if let Some(found) = find(body, wanted, scope, path) {
                return Some(found);
            }
        }
        path.truncate(depth);
        match stmt {
            // A declaration stays visible, and so does the ordinal of a loop.
            Stmt::For(l) => {
                scope.truncate(outside);
                if let Some(ordinal) = &l.counting {
                    scope.bind(ordinal);
                }
            }
            Stmt::Tasks(_) | Stmt::Own(_) => scope.truncate(outside),
            _ => {}
        }
    }
    scope.truncate(visible);
    None
}

/// What a statement itself binds.
fn binders(stmt: &Stmt) -> Vec<&crate::sym::Sym> {
    match stmt {
        Stmt::For(l) => std::iter::once(&l.var).chain(&l.counting).collect(),
        Stmt::Tasks(t) => t.vars.iter().collect(),
        Stmt::Own(o) => o.vars.iter().collect(),
        Stmt::Let(sym, _) => vec![sym],
        Stmt::Alloc(buffer) => vec![&buffer.sym],
        Stmt::AllocRing(ring) => vec![&ring.sym],
        Stmt::Roles(roles) => roles.iter().map(|r| &r.sym).collect(),
        _ => Vec::new(),
    }
}

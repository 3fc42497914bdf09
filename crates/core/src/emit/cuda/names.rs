//! Names: each symbol gets one C identifier that nothing else in scope bears.

use std::collections::HashMap;

use crate::sym::Sym;

/// Words that C++, CUDA or our own spellings have taken.
const RESERVED: &[&str] = &[
    "alignas",
    "asm",
    "atomicAdd",
    "auto",
    "bf16",
    "blockDim",
    "blockIdx",
    "bool",
    "break",
    "cadd",
    "case",
    "cdiv",
    "ceil_div",
    "cfma",
    "char",
    "class",
    "cmul",
    "conj",
    "const",
    "continue",
    "csub",
    "default",
    "delete",
    "do",
    "double",
    "double2",
    "else",
    "enum",
    "extern",
    "f16",
    "false",
    "float",
    "float2",
    "float4",
    "floor_div",
    "floor_mod",
    "for",
    "goto",
    "gridDim",
    "if",
    "inline",
    "int",
    "int2",
    "int4",
    "landing",
    "long",
    "max",
    "min",
    "namespace",
    "negated_if",
    "new",
    "operator",
    "or",
    "and",
    "not",
    "xor",
    "private",
    "public",
    "register",
    "return",
    "short",
    "signed",
    "sizeof",
    "smem",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "threadIdx",
    "tid",
    "true",
    "typedef",
    "typename",
    "uint2",
    "uint4",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "warpSize",
    "while",
];

/// The names in scope, block by block.
#[derive(Clone, Debug)]
pub(super) struct Names {
    of: HashMap<Sym, String>,
    taken: Vec<String>,
    scopes: Vec<usize>,
}

impl Names {
    /// A name for a kernel: the program's, unless C++ or CUDA has taken it.
    pub(super) fn of_kernel(program: &str) -> String {
        if RESERVED.contains(&program) { format!("{program}_kernel") } else { program.to_string() }
    }

    /// Nothing is in scope.
    pub(super) fn new() -> Names {
        Names { of: HashMap::new(), taken: Vec::new(), scopes: Vec::new() }
    }

    /// Opens a block.
    pub(super) fn enter(&mut self) {
        self.scopes.push(self.taken.len());
    }

    /// Closes the innermost block: its names may be given again.
    pub(super) fn leave(&mut self) {
        if let Some(length) = self.scopes.pop() {
            self.taken.truncate(length);
        }
    }

    /// Gives `sym` a name in the innermost block: its own, or its own and a number.
    pub(super) fn declare(&mut self, sym: &Sym) -> String {
        let name = self.reserve(sym.name());
        self.of.insert(sym.clone(), name.clone());
        name
    }

    /// Lets `sym` be written as a name that nothing else is given.
    pub(super) fn bind(&mut self, sym: &Sym, name: &str) {
        self.of.insert(sym.clone(), name.to_string());
    }

    /// Takes a name that belongs to no symbol.
    pub(super) fn reserve(&mut self, wanted: &str) -> String {
        let joint = if wanted.ends_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
        let mut name = wanted.to_string();
        let mut number = 1;
        while RESERVED.contains(&&name[..]) || self.taken.contains(&name) {
            number += 1;
            name = format!("{wanted}{joint}{number}");
        }
        self.taken.push(name.clone());
        name
    }

    /// The name of a symbol.
    pub(super) fn of<'a>(&'a self, sym: &'a Sym) -> &'a str {
        self.of.get(sym).map_or_else(|| sym.name(), String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use crate::sym::Sym;

    #[test]
    fn siblings_share_names_and_nested_blocks_do_not() {
        let (a, b, c) = (Sym::new("r"), Sym::new("r"), Sym::new("r"));
        let mut names = Names::new();
        names.enter();
        assert_eq!(names.declare(&a), "r");
        names.enter();
        assert_eq!(names.declare(&b), "r2");
        names.leave();
        assert_eq!(names.declare(&c), "r2");
        assert_eq!(names.of(&a), "r");
        assert_eq!(names.declare(&Sym::new("for")), "for2");
        assert_eq!(names.declare(&Sym::new("t2")), "t2");
        assert_eq!(names.declare(&Sym::new("t2")), "t2_2");
    }
}

//! The specification that every kernel of the GEMM kind starts from: C = alpha op(A) op(B) + beta C.

use std::fmt;

use warpwright_core::dtype::DType;
use warpwright_core::index::{Cond, Index};
use warpwright_core::ir::Program;
use warpwright_core::te::{Expr, Expression, Tensor, by_flag, select, sum};

use super::Variant;
use super::classes::{Classes, Window};
use crate::problem::{Alignment, Layout, Op};

/// Extents that are constants of a kernel; the others are arguments of each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fixed {
    /// Rows of C.
    pub m: Option<i64>,
    /// Columns of C.
    pub n: Option<i64>,
    /// Terms of each sum.
    pub k: Option<i64>,
    /// Which of A, B and C are declared as one row of elements, as dense matrices with a constant number of columns can
    /// be: copies in pieces then need not keep to rows, and no row stride is passed.
    pub flat: [bool; 3],
    /// What is known of the row strides of A and B.
    pub strides: Strides,
    /// Elements that lie between a multiple of 16 bytes and the first row of C, where it is declared as one row of elements with those.
    pub before_c: i64,
    /// Whether B is A, so that the kernel has no B.
    pub same: bool,
    /// How products of complex numbers are made of products of real ones.
    pub numbers: Numbers,
    /// The classes by which rows of A and B are added up, if they are: of A^T B, where both are declared as one row of
    /// elements and have constant numbers of columns.
    pub classes: Option<Classes>,
    /// Whether the kernel is told that alpha is 1, by the flag `alpha1`, and then does without the factor: what an
    /// element of C costs besides its terms weighs where there are few of them.
    pub alpha1: bool,
}

/// What a kernel knows of the row strides of A and B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strides {
    /// They are arguments of each call.
    #[default]
    Arguments,
    /// They are too, and callers promise that they are multiples of 16 bytes.
    OfWholePieces,
    /// They are constants of the kernel. Where the matrix is declared as one row of elements, those between its rows are in it, and those before
    /// the first.
    Constant([Span; 2]),
}

/// Where the rows of a matrix lie in one row of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Elements before the first row, with which it begins at a multiple of 16 bytes.
    pub before: i64,
    /// Elements from one row to the next.
    pub stride: i64,
}

impl Span {
    /// Elements between a multiple of 16 bytes and one that starts so many elements behind such.
    pub(super) fn before(dtype: DType, offset: i64) -> i64 {
        (offset * dtype.bytes()).rem_euclid(Alignment::MOST) / dtype.bytes()
    }

    /// Rows one after the other.
    fn dense(width: i64) -> Span {
        Span { before: 0, stride: width }
    }

    /// The same where each element is so many.
    fn wider(self, by: i64) -> Span {
        Span { before: by * self.before, stride: by * self.stride }
    }

    /// How many elements so many rows are, of `columns` each: what lies behind the last row is not among them.
    fn extent(self, rows: &Index, columns: &Index) -> Index {
        let behind = columns.offset(self.before - self.stride);
        let all = rows.scaled(self.stride);
        let all = &all + &behind;
        if behind.as_constant().is_some_and(|behind| behind >= 0) { all } else { all.maximum(&0.into()) }
    }

    fn at(self, row: &Index, column: &Index) -> Index {
        (&row.scaled(self.stride) + column).offset(self.before)
    }
}

/// How products of complex numbers are stated.
///
/// In the forms that are not whole, A and B are declared as the real numbers that they are stored as: columns of real and
/// of imaginary parts side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// As products of complex numbers.
    #[default]
    Whole,
    /// As all four products of their parts, which the last step puts together. Only where the columns of A and B are those
    /// of C.
    Parts,
    /// As three real products: of the real parts, of the imaginary parts, and of the sums of both (Gauss's form, known
    /// as 3M; Higham, "Stability of a method for multiplying complex matrices with three real matrix multiplications",
    /// SIAM J. Matrix Anal. Appl. 13, 1992). Its error is bounded otherwise: see [`crate::reference::bound`].
    Three,
    /// As the product of real matrices that says the same (an equivalent real formulation; Day and Heroux, "Solving
    /// complex-valued linear systems via equivalent real formulations", SIAM J. Sci. Comput. 23, 2001): rows of A as the
    /// real numbers that they are stored as, twice as many terms, times the matrix of twice the height and width in
    /// which each number u + iv of B stands as the rows (u, v) and (-v, u), the map of pairs that multiplies by it. Columns
    /// of the sums are real and imaginary parts of C, side by side. The products are those of the definition.
    Embedded,
    /// The same, where that matrix is a stage of its own, `Bs`, so that it is made once and not wherever it is read.
    Expanded,
}

impl Numbers {
    /// Whether numbers of B are taken as maps of pairs.
    pub fn are_embedded(self) -> bool {
        matches!(self, Numbers::Embedded | Numbers::Expanded)
    }
}

impl fmt::Display for Fixed {
    /// As the end of a kernel's name: `_m20_n20`, `_parts`, `_three`, `_embedded` or `_expanded` where numbers are not whole,
    /// `_classes4` where rows are added up by classes, `_aligned` where rows are promised to be, `_lda25_ldb27` where strides are
    /// constants, `_after1_2` where rows begin so many elements behind a multiple of 16 bytes, `_cafter3` where those of C do, and `_same` where B is A.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [("m", self.m), ("n", self.n), ("k", self.k)];
        named
            .iter()
            .filter_map(|(name, e)| e.map(|e| (name, e)))
            .try_for_each(|(n, e)| write!(f, "_{n}{e}"))?;
        f.write_str(match self.numbers {
            Numbers::Whole => "",
            Numbers::Parts => "_parts",
            Numbers::Three => "_three",
            Numbers::Embedded => "_embedded",
            Numbers::Expanded => "_expanded",
        })?;
        if let Some(classes) = self.classes {
            write!(f, "_classes{}", classes.count)?;
        }
        match self.strides {
            Strides::Arguments => {}
            Strides::OfWholePieces => f.write_str("_aligned")?,
            Strides::Constant([a, b]) => {
                write!(f, "_lda{}_ldb{}", a.stride, b.stride)?;
                if a.before + b.before > 0 {
                    write!(f, "_after{}_{}", a.before, b.before)?;
                }
            }
        }
        if self.before_c > 0 {
            write!(f, "_cafter{}", self.before_c)?;
        }
        f.write_str(if self.same { "_same" } else { "" })
    }
}

/// The product as mathematics, in the accumulation type of its elements: sums are rounded to the stored type once,
/// at the end. beta = 0 never reads C: the host says so by a flag.
pub fn specification(variant: Variant) -> Program {
    specification_at(variant, Fixed::default())
}

/// The same where some extents are known.
pub fn specification_at(variant: Variant, fixed: Fixed) -> Program {
    let (dtype, result) = (variant.precision.storage(), variant.precision.result());
    let wide = dtype.accumulator();
    // Of what is declared, and how many columns of it make one of C.
    let (declared, wider) = if fixed.numbers == Numbers::Whole { (dtype, 1) } else { (dtype.real(), 2) };
    let mut te = Expression::new("gemm").doc("C = alpha op(A) op(B) + beta C");
    let mut extent = |name: &str, known: Option<i64>| known.map_or_else(|| te.size(name), Index::from);
    let (m, n, k) = (extent("M", fixed.m), extent("N", fixed.n), extent("K", fixed.k));
    let (alpha, beta, beta0) = (te.scalar("alpha", wide), te.scalar("beta", wide), te.flag("beta0"));
    let op = variant.layout;
    let alpha1 = fixed.alpha1.then(|| te.flag("alpha1"));
    let [a, b, c] = [
        if op.a.transposes() { [&k, &m] } else { [&m, &k] },
        if op.b.transposes() { [&n, &k] } else { [&k, &n] },
        [&m, &n],
    ];
    let [of_a, of_b] = match fixed.strides {
        Strides::Constant(spans) => spans.map(|span| Some(span.wider(wider))),
        Strides::Arguments | Strides::OfWholePieces => [None; 2],
    };
    let dense = fixed.n.filter(|_| fixed.before_c > 0);
    let of_c = dense.map(|stride| Span { before: fixed.before_c, stride });
    let [a, b, c] =
        [(a, wider, fixed.flat[0], of_a), (b, wider, fixed.flat[1], of_b), (c, 1, fixed.flat[2], of_c)].map(
            |([rows, columns], wider, flat, span)| {
                let columns = columns.scaled(wider);
                let width = columns.as_constant().filter(|_| flat);
                (rows, columns, width.map(|width| span.unwrap_or(Span::dense(width))))
            },
        );
    let extents = |(rows, columns, flat): &(&Index, Index, Option<Span>)| match flat {
        Some(span) => vec![span.extent(rows, columns)],
        None => vec![(*rows).clone(), columns.clone()],
    };
    let mut operand_of = |name: &str, matrix: (&Index, Index, Option<Span>), align: i64| {
        let tensor = te.placeholder(name, declared, &extents(&matrix).iter().collect::<Vec<_>>());
        let known = matrix.2.is_some() && matches!(fixed.strides, Strides::Constant(_));
        te.align(&tensor, if known { Alignment::MOST } else { align });
        if fixed.strides == Strides::OfWholePieces && declared.bytes() < Alignment::MOST {
            te.assume_stride(&tensor, Alignment::MOST / declared.bytes());
        }
        Matrix { tensor, dtype: declared, flat: matrix.2 }
    };
    let a = operand_of("A", a, variant.align.a);
    let b = if fixed.same { a.clone() } else { operand_of("B", b, variant.align.b) };
    let tensor = te.update("C", result, &extents(&c).iter().collect::<Vec<_>>());
    let c = Matrix { tensor, dtype: result, flat: c.2 };
    te.align(&c.tensor, if fixed.before_c > 0 { Alignment::MOST } else { variant.align.c });
    let products = match (fixed.classes, a.flat, b.flat) {
        (Some(classes), Some(of_a), Some(of_b)) => {
            let windows = [of_a, of_b].map(|span| classes.window(span.stride));
            Products::by_classes(&mut te, windows, [&a, &b], [&m, &n, &k], op.a)
        }
        _ => Products::at_once(&mut te, fixed.numbers, [&a, &b], [&m, &n, &k], op, declared),
    };
    let value = |at: &[Index]| {
        let (i, j) = (&at[0], &at[1]);
        let whole = match fixed.numbers {
            Numbers::Whole => products.at(&[i, j]),
            Numbers::Parts => of_parts(|of_a, of_b| products.at(&[&part(i, of_a), &part(j, of_b)]), op, wide),
            Numbers::Three => of_three(|p| products.at(&[&Index::from(p), i, j]), op, wide),
            Numbers::Embedded | Numbers::Expanded => {
                let [real, imaginary] = [0, 1].map(|of| products.at(&[i, &part(j, of)]));
                real.complex(imaginary, wide)
            }
        };
        let product = alpha * whole.clone();
        let with_old = product.clone() + beta * widened(c.at(&at[0], &at[1]), result);
        let alone = match &alpha1 {
            Some(flag) => by_flag(flag, stored(whole, result), stored(product, result)),
            None => stored(product, result).into(),
        };
        by_flag(&beta0, alone, stored(with_old, result))
    };
    match c.flat {
        Some(span) => te.compute_rows(&c.tensor, span.before, span.stride, &["i", "j"], value),
        None => te.compute(&c.tensor, &["i", "j"], value),
    }
    te.program()
}

/// The sums of products that elements of C are made of.
struct Products {
    /// The sums.
    all: Tensor,
    /// What has to be added to them: the terms that are left over.
    rest: Option<Tensor>,
}

impl Products {
    /// Sums over all of `k`.
    fn at_once(
        te: &mut Expression,
        numbers: Numbers,
        [a, b]: [&Matrix; 2],
        [m, n, k]: [&Index; 3],
        op: Layout,
        declared: DType,
    ) -> Products {
        let wider = if numbers == Numbers::Whole { 1 } else { 2 };
        let terms = if numbers.are_embedded() { k.scaled(wider) } else { k.clone() };
        let r = te.reduce_axis("k", &terms);
        let term = r.var();
        let (extents, axes): (&[&Index], &[&str]) = match numbers {
            Numbers::Whole | Numbers::Parts => (&[&m.scaled(wider), &n.scaled(wider)], &["i", "j"]),
            Numbers::Three => (&[&Index::from(3), m, n], &["p", "i", "j"]),
            Numbers::Embedded | Numbers::Expanded => (&[m, &n.scaled(wider)], &["i", "j"]),
        };
        let expanded = (numbers == Numbers::Expanded).then(|| {
            let stage = te.intermediate("Bs", declared, &[&k.scaled(wider), &n.scaled(wider)]);
            te.compute(&stage, &["r", "c"], |at| embedded(b, op.b, [&at[0], &at[1]]).into());
            stage
        });
        let acc = te.intermediate("acc", declared.accumulator(), extents);
        te.compute(&acc, axes, |at| {
            let terms = match at {
                [p, i, j] => factor(p, a, op.a, [i, &term]) * factor(p, b, op.b, [&term, j]),
                [i, j] if numbers.are_embedded() => {
                    let right = match &expanded {
                        Some(stage) => stage.at(&[&term, j]),
                        None => embedded(b, op.b, [&term, j]),
                    };
                    component(a, op.a, [i, &term]) * right
                }
                _ => operand(a, op.a, &at[0], &term, declared) * operand(b, op.b, &term, &at[1], declared),
            };
            sum(terms, &[&r])
        });
        Products { all: acc, rest: None }
    }

    /// Sums over the rows of each class, which lie somewhere in the products of windows; and over the rows behind the last
    /// whole round of classes.
    fn by_classes(
        te: &mut Expression,
        [of_a, of_b]: [Window; 2],
        [a, b]: [&Matrix; 2],
        [m, n, k]: [&Index; 3],
        op: Op,
    ) -> Products {
        let (dtype, classes) = (a.dtype, of_a.classes);
        let term = |row_of_a: Index, row_of_b: Index| {
            let left = widened(a.tensor.at(&[&row_of_a]), dtype);
            let left = if is_conjugated(op) && dtype.is_complex() { left.conj() } else { left };
            left * widened(b.tensor.at(&[&row_of_b]), dtype)
        };
        let count = Index::from(classes.count);
        let (columns_of_a, columns_of_b) = (Index::from(of_a.columns), Index::from(of_b.columns));
        let each = te.intermediate("each", dtype.accumulator(), &[&count, &columns_of_a, &columns_of_b]);
        let r = te.reduce_axis("k", &k.div(classes.count));
        te.compute(&each, &["q", "i", "j"], |at| {
            let (q, i, j) = (&at[0], &at[1], &at[2]);
            let first = |rows: i64, start: Index| &r.var().scaled(rows) + &start;
            sum(term(&first(of_a.rows(), of_a.start(q)) + i, &first(of_b.rows(), of_b.start(q)) + j), &[&r])
        });
        let acc = te.intermediate("acc", dtype.accumulator(), &[m, n]);
        let class = te.reduce_axis("q", &count);
        te.compute(&acc, &["i", "j"], |at| {
            let q = class.var();
            sum(each.at(&[&q, &(&at[0] + &of_a.shift(&q)), &(&at[1] + &of_b.shift(&q))]), &[&class])
        });
        let rest = te.intermediate("rest", dtype.accumulator(), &[m, n]);
        let left_over = te.reduce_axis("k", &k.rem(classes.count));
        te.compute(&rest, &["i", "j"], |at| {
            let row = &k.div(classes.count).scaled(classes.count) + &left_over.var();
            let element = |width: i64, column: &Index| &row.scaled(width) + column;
            sum(term(element(of_a.width, &at[0]), element(of_b.width, &at[1])), &[&left_over])
        });
        Products { all: acc, rest: Some(rest) }
    }

    fn at(&self, index: &[&Index]) -> Expr {
        let all = self.all.at(index);
        match &self.rest {
            Some(rest) => all + rest.at(index),
            None => all,
        }
    }
}

/// The column of real (0) or imaginary (1) parts of a column of numbers.
fn part(column: &Index, part: i64) -> Index {
    &column.scaled(2) + &Index::from(part)
}

fn is_conjugated(op: Op) -> bool {
    op == Op::ConjugateTranspose
}

/// What the real product `p` of three takes of an element of op(X): its real part, its imaginary part, and their sum, or
/// their difference where it is conjugated.
fn factor(p: &Index, matrix: &Matrix, op: Op, [row, column]: [&Index; 2]) -> Expr {
    let (row, column) = if op.transposes() { (column, row) } else { (row, column) };
    let [real, imaginary] = [0, 1].map(|of| matrix.at(row, &part(column, of)));
    let both = (real.clone(), imaginary.clone());
    let both = if is_conjugated(op) { both.0 - both.1 } else { both.0 + both.1 };
    let is = |product: i64| Cond::lt(p.clone(), Index::from(product + 1));
    select(is(0), real, select(is(1), imaginary, both))
}

/// Of a row of op(X) as real numbers, real and imaginary parts in turn, the one in a column: an imaginary part is negative
/// where op(X) is conjugated.
fn component(matrix: &Matrix, op: Op, [row, column]: [&Index; 2]) -> Expr {
    let (number, of) = (column.div(2), column.rem(2));
    let value = stored_part(matrix, op, [row, &number], &of);
    if is_conjugated(op) { select(Cond::lt(0.into(), of), -value.clone(), value) } else { value }
}

/// An element of the real matrix that op(X) is as a map of pairs: of the numbers u + iv in a row, its rows `2 row` hold u and v in
/// turn, its rows `2 row + 1` hold -v and u. Where op(X) is conjugated, each v is negative.
fn embedded(matrix: &Matrix, op: Op, [row, column]: [&Index; 2]) -> Expr {
    let (below, beside) = (row.rem(2), column.rem(2));
    let value = stored_part(matrix, op, [&row.div(2), &column.div(2)], &(row + column).rem(2));
    let negative = if is_conjugated(op) { Cond::lt(below, beside) } else { Cond::lt(beside, below) };
    select(negative, -value.clone(), value)
}

/// The real part (0) or the imaginary part (1) of an element of op(X), as it is stored: nothing is conjugated.
fn stored_part(matrix: &Matrix, op: Op, [row, column]: [&Index; 2], part: &Index) -> Expr {
    let (row, column) = if op.transposes() { (column, row) } else { (row, column) };
    matrix.at(row, &(&column.scaled(2) + part))
}

/// The product of x + iy and u + iv, either of which may be conjugated, from three products: of x and u, of y and v, and
/// of x + y and u + v, with y or v negative where the number is conjugated.
fn of_three(at: impl Fn(i64) -> Expr, op: Layout, dtype: DType) -> Expr {
    let (xu, yv, both) = (at(0), at(1), at(2));
    let (real, imaginary) = if is_conjugated(op.a) == is_conjugated(op.b) {
        (xu.clone() - yv.clone(), both - xu - yv)
    } else {
        (xu.clone() + yv.clone(), both - xu + yv)
    };
    real.complex(imaginary, dtype)
}

/// The product of x + iy and u + iv, either of which may be conjugated, from the four products of their parts: `at` is
/// asked for the products of x (0) or y (1) and u (0) or v (1).
fn of_parts(at: impl Fn(i64, i64) -> Expr, op: Layout, dtype: DType) -> Expr {
    let (xu, xv, yu, yv) = (at(0, 0), at(0, 1), at(1, 0), at(1, 1));
    let (real, imaginary) = match (is_conjugated(op.a), is_conjugated(op.b)) {
        (false, false) => (xu - yv, xv + yu),
        (true, false) => (xu + yv, xv - yu),
        (false, true) => (xu + yv, yu - xv),
        (true, true) => (xu - yv, -(xv + yu)),
    };
    real.complex(imaginary, dtype)
}

/// A matrix of the expression.
#[derive(Clone)]
struct Matrix {
    tensor: Tensor,
    /// Of its elements.
    dtype: DType,
    /// Where its rows lie, where the matrix is declared as one row of elements.
    flat: Option<Span>,
}

impl Matrix {
    /// An element.
    fn at(&self, row: &Index, column: &Index) -> Expr {
        match self.flat {
            Some(span) => self.tensor.at(&[&span.at(row, column)]),
            None => self.tensor.at(&[row, column]),
        }
    }
}

/// An element of op(X), in the accumulation type.
fn operand(matrix: &Matrix, op: Op, row: &Index, column: &Index, dtype: DType) -> Expr {
    let element = if op.transposes() { matrix.at(column, row) } else { matrix.at(row, column) };
    let element = widened(element, dtype);
    if op == Op::ConjugateTranspose && dtype.is_complex() { element.conj() } else { element }
}

fn widened(value: Expr, dtype: DType) -> Expr {
    if dtype.accumulator() == dtype { value } else { value.cast(dtype.accumulator()) }
}

fn stored(value: Expr, dtype: DType) -> Expr {
    if dtype.accumulator() == dtype { value } else { value.cast(dtype) }
}

#[cfg(test)]
mod tests {
    use super::{Fixed, Numbers, is_conjugated, specification, specification_at};
    use crate::kernels::Variant;
    use crate::problem::Layout;
    use warpwright_core::ir::{Program, parse, validate};
    use warpwright_sim::exact::{self, Trials};
    use warpwright_sim::{Mode, Options};

    #[test]
    fn the_specification_reads_as_the_definition_of_the_product() {
        let variant = Variant::new("c64".parse().unwrap(), "cn".parse().unwrap());
        let text = specification(variant).to_string();
        assert!(text.contains("acc[i, j] += conj(A[k, i]) * B[k, j]"), "{text}");
        assert!(text.contains("C[i, j] = alpha * acc[i, j] + beta * C[i, j]"), "{text}");
    }

    #[test]
    fn one_operand_may_be_used_twice() {
        let variant = Variant::new("c64".parse().unwrap(), "cn".parse().unwrap());
        let fixed = Fixed { m: Some(3), n: Some(3), same: true, ..Fixed::default() };
        let text = specification_at(variant, fixed).to_string();
        assert!(text.contains("acc[i, j] += conj(A[k, i]) * A[k, j]"), "{text}");
        assert!(!text.contains("B:"), "{text}");
    }

    #[test]
    fn embedded_numbers_are_the_rows_of_a_map_of_pairs() {
        let variant = Variant::new("c128".parse().unwrap(), "nn".parse().unwrap());
        let fixed = Fixed { n: Some(3), k: Some(5), numbers: Numbers::Embedded, ..Fixed::default() };
        let text = specification_at(variant, fixed).to_string();
        for wanted in [
            "A: in f64[M, 10; lda], B: in f64[5, 6; ldb], C: inout c128[M, 3; ldc]",
            "alloc acc: f64[M, 6] global",
            "for k in 0..10 {
      acc[i, j] += A[i, k] * (j%2 < k%2 ? -B[k/2, 2*(j/2) + (j + k)%2] : B[k/2, 2*(j/2) + (j + k)%2])",
            "C[i, j] = alpha * (c128(acc[i, 2*j]) + times_i(c128(acc[i, 2*j + 1]))) + beta * C[i, j]",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
        // The map is the same, and made beforehand.
        let text = specification_at(variant, Fixed { numbers: Numbers::Expanded, ..fixed }).to_string();
        for wanted in [
            "alloc Bs: f64[10, 6] global",
            "Bs[r, c] = c%2 < r%2 ? -B[r/2, 2*(c/2) + (r + c)%2] : B[r/2, 2*(c/2) + (r + c)%2]",
            "acc[i, j] += A[i, k] * Bs[k, j]",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }

    /// The product of complex numbers by its definition, on the real numbers that they are stored as.
    fn in_reals(op: Layout) -> Program {
        let of = |name: &str, transposed: bool, [row, column]: [&str; 2], part: i64| {
            let (row, column) = if transposed { (column, row) } else { (row, column) };
            format!("{name}[{row}, 2*{column} + {part}]")
        };
        let a = |part| of("A", op.a.transposes(), ["i", "k"], part);
        let b = |part| of("B", op.b.transposes(), ["k", "j"], part);
        let sign = |negative: bool| if negative { "-" } else { "+" };
        let (of_a, of_b) = (is_conjugated(op.a), is_conjugated(op.b));
        let shape = |transposed: bool, [rows, columns]: [i64; 2]| {
            if transposed { [columns, 2 * rows] } else { [rows, 2 * columns] }
        };
        let ([am, an], [bm, bn]) = (shape(op.a.transposes(), [4, 5]), shape(op.b.transposes(), [5, 3]));
        let text = format!(
            "program p(alpha: c128, beta: c128, beta0: flag,
                A: in f64[{am}, {an}; lda], B: in f64[{bm}, {bn}; ldb], C: inout c128[4, 3; ldc]) {{
              alloc re: f64[4, 3] global
              alloc im: f64[4, 3] global
              for i in 0..4, j in 0..3 {{
                re[i, j] = 0
                for k in 0..5 {{ re[i, j] += {x} * {u} {yv} {y} * {v} }}
              }}
              for i in 0..4, j in 0..3 {{
                im[i, j] = 0
                for k in 0..5 {{ im[i, j] += 0 {xv} {x} * {v} {yu} {y} * {u} }}
              }}
              for i in 0..4, j in 0..3 {{
                if beta0 {{ C[i, j] = alpha * (c128(re[i, j]) + times_i(c128(im[i, j]))) }}
                else {{ C[i, j] = alpha * (c128(re[i, j]) + times_i(c128(im[i, j]))) + beta * C[i, j] }}
              }}
            }}",
            x = a(0),
            y = a(1),
            u = b(0),
            v = b(1),
            yv = sign(of_a == of_b),
            xv = sign(of_b),
            yu = sign(of_a),
        );
        parse::program(&text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn numbers_made_of_parts_are_those_of_the_definition() {
        for layout in ["nn", "tn", "cn", "nt", "nc", "cc", "ct", "tc"] {
            let variant = Variant::new("c128".parse().unwrap(), layout.parse().unwrap());
            let definition = in_reals(variant.layout);
            let as_they_are = variant.layout.a.transposes() && !variant.layout.b.transposes();
            for numbers in [Numbers::Embedded, Numbers::Expanded, Numbers::Three, Numbers::Parts] {
                if numbers == Numbers::Parts && !as_they_are {
                    continue;
                }
                let fixed = Fixed { m: Some(4), n: Some(3), k: Some(5), numbers, ..Fixed::default() };
                let specified = specification_at(variant, fixed);
                let in_order = Options { mode: Mode::InOrder, ..Options::default() };
                let trials = Trials { options: in_order, ..Trials::default() };
                let report = exact::check(&definition, &specified, &[], &trials);
                let report = report.unwrap_or_else(|e| panic!("{layout} {numbers:?}: {e}"));
                assert!(report.passed(), "{layout} {numbers:?}:\n{specified}");
            }
        }
    }

    #[test]
    fn tensors_are_aligned_as_the_variant_says() {
        let mut variant = Variant::new("f32".parse().unwrap(), "nn".parse().unwrap());
        (variant.align.a, variant.align.c) = (4, 8);
        let text = specification(variant).to_string();
        assert!(text.contains("A: in f32[M, K; lda] align 4, B: in f32[K, N; ldb], C: inout"), "{text}");
        assert!(text.contains("C: inout f32[M, N; ldc] align 8"), "{text}");
    }

    #[test]
    fn every_specification_is_well_formed() {
        for dtype in ["f32", "f64", "c64", "c128", "bf16", "f16", "i32", "tf32", "bf16-f32"] {
            for layout in ["nn", "nt", "tc", "cn"] {
                let variant = Variant::new(dtype.parse().unwrap(), layout.parse().unwrap());
                validate::check(specification(variant))
                    .unwrap_or_else(|faults| panic!("{dtype} {layout}: {faults:?}"));
            }
        }
    }
}

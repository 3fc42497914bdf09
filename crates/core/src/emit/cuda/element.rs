//! Where elements are: what an access looks like in C.

use super::body::Body;
use super::names::Names;
use super::spelling::{convert, matrix};
use super::text::{Strength, Text};
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::{Atom, Index, Interval};
use crate::ir::{Access, Buffer, Space, Value, Window, shared_elements};
use crate::layout::Layout;
use crate::sym::Sym;

/// Stands for a stride that only the host knows.
const UNKNOWN_STRIDE: i64 = 1 << 40;

impl Body<'_> {
    /// The C type of an element as it is stored.
    pub(super) fn c_type(&mut self, dtype: DType) -> &'static str {
        match dtype {
            DType::F16 => self.prelude.require(&convert::F16),
            DType::Bf16 => self.prelude.require(&convert::BF16),
            _ => {}
        }
        c_type(dtype)
    }

    /// An element, as something that can be read or assigned to.
    pub(super) fn element(&mut self, access: &Access) -> Result<String, Diagnosis> {
        let unit = self.unit;
        let buffer = unit.buffer(&access.buffer)?;
        self.used.insert(access.buffer.clone());
        let name = self.names.of(&access.buffer).to_string();
        match buffer.space {
            Space::Param(_) | Space::Global => {
                let stride = buffer.row_stride.as_ref();
                let near = stride.and_then(|stride| self.element_by_corner(access, stride));
                if let Some(element) = near.or_else(|| self.element_by_cursor(access, stride)) {
                    return Ok(element);
                }
                let offset = self.global_offset(buffer, &access.index);
                Ok(format!("{name}[{}]", offset.text))
            }
            Space::Shared if buffer.split => {
                if rows_of_a_plane(buffer)?.is_some() {
                    return Ok(self.shared_element(buffer, &format!("{name}[0]"), &access.index));
                }
                let place = self.physical_offset(access)?.unwrap_or_default();
                let place = self.ranges.simplify(&place);
                Ok(format!("{name}[0][{}]", self.index(&place).text))
            }
            Space::Shared => Ok(self.shared_element(buffer, &name, &access.index)),
            Space::Reg => self.register(buffer, &name, &access.index),
        }
    }

    /// The C type of an element of a buffer as it is stored.
    fn c_type_of(&mut self, buffer: &Buffer) -> &'static str {
        match (buffer.split, buffer.dtype) {
            (true, DType::C64) => "float4",
            (true, _) => "float2",
            (false, dtype) => self.c_type(dtype),
        }
    }

    /// How far apart the parts of an element lie, in elements, if its buffer stores parts of numbers in shared memory: each
    /// part has a plane of its own there, so that what is read goes where an instruction wants it.
    fn planes(&self, access: &Access) -> Result<Option<i64>, Diagnosis> {
        let buffer = self.unit.buffer(&access.buffer)?;
        if !buffer.split || buffer.space != Space::Shared {
            return Ok(None);
        }
        shared_elements(buffer).map(Some)
    }

    /// The parts of an element of which this is the first.
    fn parts_of(&mut self, access: &Access, element: String) -> Result<String, Diagnosis> {
        let dtype = self.unit.buffer(&access.buffer)?.dtype;
        Ok(match self.planes(access)? {
            Some(plane) => {
                let (helper, function) = match dtype {
                    DType::C64 => (&matrix::LOAD_PARTS_C64, "load_parts_c64"),
                    _ => (&matrix::LOAD_PARTS_F32, "load_parts_f32"),
                };
                self.prelude.require(helper);
                format!("{function}(&{element}, {plane})")
            }
            None => element,
        })
    }

    /// A value as it is stored in a buffer whose elements are split into tf32 parts. What comes from such a buffer is
    /// copied.
    pub(super) fn parts(&mut self, value: &Value, dtype: DType) -> Result<Text, Diagnosis> {
        match value {
            Value::Load(access) if self.unit.buffer(&access.buffer)?.split => {
                let element = self.element(access)?;
                Ok(Text::primary(self.parts_of(access, element)?))
            }
            // Where nothing comes in parts, what is chosen is split: a load that has a condition then has no more than that.
            Value::Select(cond, a, b) if self.comes_in_parts(value)? => {
                let cond = self.ranges.simplify_cond(cond);
                match cond.as_constant() {
                    Some(true) => return self.parts(a, dtype),
                    Some(false) => return self.parts(b, dtype),
                    None => {}
                }
                let c = self.cond(&cond).at_least(Strength::Or);
                let a = self.parts(a, dtype)?.at_least(Strength::Choice);
                let b = self.parts(b, dtype)?.at_least(Strength::Choice);
                Ok(Text::new(format!("{c} ? {a} : {b}"), Strength::Choice))
            }
            _ => {
                self.prelude.require(&matrix::IN_PARTS);
                let whole = self.value(value, dtype)?;
                Ok(Text::primary(format!("in_parts({})", whole.text)))
            }
        }
    }

    /// Whether a value, or what may be chosen as it, is read from a buffer whose elements are split.
    fn comes_in_parts(&self, value: &Value) -> Result<bool, Diagnosis> {
        Ok(match value {
            Value::Load(access) => self.unit.buffer(&access.buffer)?.split,
            Value::Select(_, a, b) => self.comes_in_parts(a)? || self.comes_in_parts(b)?,
            _ => false,
        })
    }

    /// An element, as a value.
    pub(super) fn load(&mut self, access: &Access) -> Result<Text, Diagnosis> {
        let element = self.element(access)?;
        match self.half_of_pair(access)? {
            Some((pair, half)) => {
                let c_type = self.c_type(self.unit.buffer(&access.buffer)?.dtype);
                let shift = self.index(&half.scaled(16)).at_least(Strength::Sum);
                Ok(Text::new(format!("({c_type})({element}[{pair}] >> {shift})"), Strength::Unary))
            }
            None if self.unit.buffer(&access.buffer)?.split => {
                self.prelude.require(&matrix::WHOLE);
                let parts = self.parts_of(access, element)?;
                Ok(Text::primary(format!("whole({parts})")))
            }
            None => Ok(Text::primary(element)),
        }
    }

    /// The statement that stores to an element.
    pub(super) fn store(&mut self, access: &Access, value: Text) -> Result<String, Diagnosis> {
        let element = self.element(access)?;
        match self.half_of_pair(access)? {
            Some((pair, half)) => {
                self.prelude.require(&convert::SET_HALF);
                let half = self.index(&half).text;
                Ok(format!("set_half({element}[{pair}], {half}, {});", value.text))
            }
            None => Ok(match self.planes(access)? {
                Some(plane) => {
                    self.prelude.require(&matrix::STORE_PARTS);
                    format!("store_parts(&{element}, {plane}, {});", value.text)
                }
                None => format!("{element} = {};", value.text),
            }),
        }
    }

    /// For an element of a fragment of 16-bit elements, the register that holds it and which half of it.
    fn half_of_pair(&mut self, access: &Access) -> Result<Option<(String, Index)>, Diagnosis> {
        let buffer = self.unit.buffer(&access.buffer)?;
        if buffer.fragment.is_none() || !buffer.dtype.is_half() {
            return Ok(None);
        }
        let register = self.owned_register(buffer, &access.index)?;
        Ok(Some((self.index(&register.div(2)).text, register.rem(2))))
    }

    /// The register that the variables of the `own` loop around stand for, or one of the run that it begins.
    fn owned_register(&self, buffer: &Buffer, index: &[Index]) -> Result<Index, Diagnosis> {
        let [.., row, column] = index else {
            return Err(Diagnosis::new(format!(
                "the fragment `{}` has less than two dimensions",
                buffer.sym
            )));
        };
        let owned = self.owned.iter().rev().find_map(|o| {
            let within = self.ranges.simplify(&(column - &Index::var(&o.column)));
            let same = row.as_var() == Some(&o.row)
                && self.ranges.of(&within).within(0, o.run - 1)
                && buffer.fragment == Some(o.fragment);
            same.then(|| &o.register + &within)
        });
        owned.ok_or_else(|| {
            Diagnosis::new(format!("an element of the fragment `{}` is touched", buffer.sym))
                .because("which thread has it is known in an `own` loop over it only")
        })
    }

    /// How far an element is from the first of its buffer, counted in elements; a stride that only the host knows is
    /// taken as one no constant reaches. `None` for fragments.
    pub(super) fn physical_offset(&self, access: &Access) -> Result<Option<Index>, Diagnosis> {
        let buffer = self.unit.buffer(&access.buffer)?;
        if buffer.fragment.is_some() {
            return Ok(None);
        }
        if let (Space::Shared, Some(layout)) = (buffer.space, &buffer.layout) {
            return Ok(Some(layout.apply(&access.index)));
        }
        let mut offset = Index::default();
        let mut stride = Some(1);
        for (i, dim) in access.index.iter().zip(&buffer.dims).rev() {
            if dim.pitch.is_some() {
                continue;
            }
            match stride {
                Some(s) => offset = &offset + &i.scaled(s),
                // Whatever the stride is, it is not 1.
                None => offset = &offset + &i.scaled(UNKNOWN_STRIDE),
            }
            let padded = buffer.row_stride.is_some();
            stride = stride.zip(dim.extent.as_constant().filter(|_| !padded)).map(|(s, e)| s * e);
        }
        Ok(Some(offset))
    }

    /// The address of an element.
    pub(super) fn address(&mut self, access: &Access) -> Result<String, Diagnosis> {
        Ok(format!("&{}", self.element(access)?))
    }

    /// The first element of a window.
    pub(super) fn start(window: &Window) -> Access {
        Access { buffer: window.buffer.clone(), index: window.start() }
    }

    /// The offset of an element of a buffer in device memory, in 64 bits unless intervals prove 32 enough: the number
    /// of a row is widened before it is multiplied, which costs one instruction where a 64-bit stride would cost
    /// three.
    fn global_offset(&mut self, buffer: &Buffer, index: &[Index]) -> Text {
        if let ([row, column], Some(stride)) = (index, &buffer.row_stride) {
            let row = self.ranges.simplify(row);
            let column = self.index(column);
            let product = match row.as_constant() {
                Some(0) => return column,
                Some(1) => self.variable(stride).text,
                _ => {
                    let row = self.long_index(&row).at_least(Strength::Product);
                    format!("{row}*{}", self.variable(stride).text)
                }
            };
            return added(product, column);
        }
        let mut offset: Option<Index> = None;
        let mut written: Option<Text> = None;
        for (i, dim) in index.iter().zip(&buffer.dims) {
            match (written.take(), offset.take(), dim.extent.as_constant()) {
                (None, None, _) => offset = Some(i.clone()),
                (None, Some(o), Some(extent)) => offset = Some(&o.scaled(extent) + i),
                (None, Some(o), None) if self.ranges.simplify(&o) == Index::default() => {
                    offset = Some(i.clone());
                }
                (None, Some(o), None) => {
                    let fits = self.product_fits(&o, &dim.extent);
                    let o = if fits { self.index(&o) } else { self.long_index(&o) };
                    written = Some(self.row_and_column(o, &dim.extent, i));
                }
                (Some(w), _, _) => written = Some(self.row_and_column(w, &dim.extent, i)),
            }
        }
        match (written, offset) {
            (Some(w), _) => w,
            (None, Some(o)) => self.index(&o),
            (None, None) => Text::primary("0"),
        }
    }

    /// `row*extent + column`
    fn row_and_column(&mut self, row: Text, extent: &Index, column: &Index) -> Text {
        let extent = self.index(extent).at_least(Strength::Unary);
        let column = self.index(column);
        added(format!("{}*{extent}", row.at_least(Strength::Product)), column)
    }

    fn product_fits(&self, row: &Index, extent: &Index) -> bool {
        let most = |x: &Index| self.ranges.of(x).hi;
        let product = most(row).zip(most(extent)).and_then(|(r, e)| (r + 1).checked_mul(e));
        product.is_some_and(|p| p <= i64::from(i32::MAX))
    }

    /// `As[r][c]`, or `As[As_at(r, c)]` where the layout is not one of nested rows. Where a row is long and unrolled loops
    /// count in it from where a loop that is not unrolled stands, `(&As[r][c])[i]`: the compiler adds up an index before
    /// it makes an address of it, and takes a register and two instructions for each sum that is not the same.
    fn shared_element(&mut self, buffer: &Buffer, name: &str, index: &[Index]) -> String {
        let nested = nested_rows(buffer);
        if let Some(rows) = &nested {
            let element = self.element_of_a_run(name, rows, index);
            if let Some(element) = element.or_else(|| self.element_of_a_lane(name, rows, index)) {
                return element;
            }
        }
        let axes: Vec<usize> = match (&buffer.layout, nested) {
            (_, Some(rows)) => rows.into_iter().map(|(axis, _)| axis).collect(),
            (Some(layout), None) => {
                if let Some(element) = self.element_of_a_tile(name, layout, index) {
                    return element;
                }
                if let Some(element) = self.element_by_place(&buffer.sym, name, layout, index) {
                    return element;
                }
                let arguments: Vec<_> = index.iter().map(|i| self.index(i).text).collect();
                let function = self.layout_function(buffer, layout);
                return format!("{name}[{function}({})]", arguments.join(", "));
            }
            (None, None) => (0..index.len()).collect(),
        };
        let Some((last, outer)) = axes.split_last() else { return name.to_string() };
        let rows: String = outer.iter().map(|axis| format!("[{}]", self.index(&index[*axis]).text)).collect();
        let row = format!("{name}{rows}");
        match self.counted_from_a_loop(&index[*last]) {
            Some((from, count)) => {
                format!("(&{row}[{}])[{}]", self.index(&from).text, self.index(&count).text)
            }
            None => format!("{row}[{}]", self.index(&index[*last]).text),
        }
    }

    /// Row `x/n` and column `x%n` of rows of `n` elements without anything between them: element `x` from the first on,
    /// for which nobody divides.
    fn element_of_a_run(&mut self, name: &str, rows: &[(usize, i64)], index: &[Index]) -> Option<String> {
        let [outer @ .., (row, _), (column, length)] = rows else { return None };
        let [row, column] = [row, column].map(|axis| self.ranges.simplify(&index[*axis]));
        let ([(Atom::Div(x, by), 1)], 0) = (row.terms(), row.constant_term()) else { return None };
        let ([(Atom::Mod(y, of), 1)], 0) = (column.terms(), column.constant_term()) else { return None };
        let rest = x - y;
        let whole = rest.constant_term() % length == 0 && rest.terms().iter().all(|(_, c)| c % length == 0);
        if by != length || of != length || !whole {
            return None;
        }
        let x = x.clone();
        let outer: String =
            outer.iter().map(|(axis, _)| format!("[{}]", self.index(&index[*axis]).text)).collect();
        Some(format!("(&{name}{outer}[0][0])[{}]", self.index(&x).text))
    }

    /// An element of a layout by tiles whose place in its tile is known: nobody divides to find that.
    fn element_of_a_tile(&mut self, name: &str, layout: &Layout, index: &[Index]) -> Option<String> {
        let offset = self.ranges.simplify(&layout.apply(index));
        let is_plain = offset.terms().iter().all(|(atom, _)| matches!(atom, Atom::Var(_)));
        let was_plain = layout.offset.terms().iter().all(|(atom, _)| matches!(atom, Atom::Var(_)));
        if !is_plain || was_plain {
            return None;
        }
        Some(match self.counted_from_a_loop(&offset) {
            Some((from, count)) => {
                format!("(&{name}[{}])[{}]", self.index(&from).text, self.index(&count).text)
            }
            None => format!("{name}[{}]", self.index(&offset).text),
        })
    }

    /// An index as what it is where loops that are not unrolled stand, and what unrolled ones add to that.
    fn counted_from_a_loop(&self, index: &Index) -> Option<(Index, Index)> {
        let (from, count) = self.parted_by_unrolled_loops(&self.ranges.simplify(index));
        let stands = self.serial_loops.iter().any(|var| from.mentions(var));
        // No pointer before the first element.
        let within = self.ranges.of(&from).lo.is_some_and(|lo| lo >= 0);
        (stands && within && !count.terms().is_empty()).then_some((from, count))
    }

    /// The sum of the terms of an index that depend on more than unrolled loops, and the sum of the others and of its constant.
    pub(super) fn parted_by_unrolled_loops(&self, index: &Index) -> (Index, Index) {
        let (count, from) = index.parted(|atom| {
            let mut unrolled = true;
            Index::atom(atom.clone()).for_each_var(&mut |s| unrolled &= self.unrolled_loops.contains(s));
            unrolled
        });
        let constant = from.constant_term();
        (from.offset(-constant), count.offset(constant))
    }

    /// A device function for the offsets of a layout, named after the buffer.
    fn layout_function(&mut self, buffer: &Buffer, layout: &Layout) -> String {
        if let Some(name) = self.layout_functions.get(&buffer.sym) {
            return name.clone();
        }
        let outside = std::mem::replace(&mut self.names, Names::new());
        let mut parameters = Vec::new();
        for (axis, dim) in layout.axes.iter().zip(&buffer.dims) {
            let name = self.names.declare(axis);
            parameters.push(format!("int {name}"));
            if let Some(extent) = dim.extent.as_constant() {
                self.ranges.set(axis, Interval::new(0, extent - 1));
            }
        }
        let offset = self.index(&layout.offset).text;
        self.names = outside;
        let of = self.names.of(&buffer.sym);
        let axes = layout.axes.iter().map(Sym::name).collect::<Vec<_>>().join(", ");
        let parameters = parameters.join(", ");
        let name = self.prelude.function(&format!("{of}_at"), |name| {
            format!(
                "// Where element ({axes}) of {of} is kept.\n__device__ __forceinline__ int {name}({parameters}) {{ return {offset}; }}"
            )
        });
        self.layout_functions.insert(buffer.sym.clone(), name.clone());
        name
    }

    /// A register: distributed dimensions say whose it is, not which.
    fn register(&mut self, buffer: &Buffer, name: &str, index: &[Index]) -> Result<String, Diagnosis> {
        if Self::is_scalar(buffer) {
            return Ok(name.to_string());
        }
        let plain = index.len() - if buffer.fragment.is_some() { 2 } else { 0 };
        let mut text = name.to_string();
        for (i, _) in index.iter().zip(&buffer.dims).take(plain).filter(|(_, d)| d.pitch.is_none()) {
            text.push_str(&format!("[{}]", self.index(i).text));
        }
        // A pair of 16-bit elements is taken apart by whoever reads or writes one of them.
        if buffer.fragment.is_some() && !buffer.dtype.is_half() {
            let register = self.owned_register(buffer, index)?;
            let number = match register.as_var() {
                Some(variable) => self.variable(variable),
                None => self.index(&register),
            };
            text.push_str(&format!("[{}]", number.text));
        }
        Ok(text)
    }

    /// The part of a fragment buffer that one instruction works on: `a[mi]`.
    pub(super) fn fragment(&mut self, window: &Window) -> Result<String, Diagnosis> {
        self.used.insert(window.buffer.clone());
        let name = self.names.of(&window.buffer).to_string();
        self.fragment_of(&name, window)
    }

    /// The same part of another array with as many elements.
    pub(super) fn fragment_of(&mut self, name: &str, window: &Window) -> Result<String, Diagnosis> {
        let unit = self.unit;
        let buffer = unit.buffer(&window.buffer)?;
        let mut text = name.to_string();
        let plain = buffer.dims.len() - 2;
        for (i, _) in window.start().iter().zip(&buffer.dims).take(plain).filter(|(_, d)| d.pitch.is_none()) {
            text.push_str(&format!("[{}]", self.index(i).text));
        }
        Ok(text)
    }

    /// The declaration of a register buffer.
    pub(super) fn register_declaration(&mut self, buffer: &Buffer) -> Result<String, Diagnosis> {
        let name = self.names.of(&buffer.sym).to_string();
        self.register_declaration_of(&name, buffer)
    }

    /// The declaration of another array with the elements of a register buffer.
    pub(super) fn register_declaration_of(
        &mut self,
        name: &str,
        buffer: &Buffer,
    ) -> Result<String, Diagnosis> {
        let mut c_type = self.c_type_of(buffer);
        let plain = buffer.dims.len() - if buffer.fragment.is_some() { 2 } else { 0 };
        let mut extents = String::new();
        if !Self::is_scalar(buffer) {
            for dim in buffer.dims.iter().take(plain).filter(|d| d.pitch.is_none()) {
                let extent = constant(&dim.extent, buffer)?;
                extents.push_str(&format!("[{extent}]"));
            }
        }
        if let Some(fragment) = buffer.fragment {
            let tile = [
                constant(&buffer.dims[plain].extent, buffer)?,
                constant(&buffer.dims[plain + 1].extent, buffer)?,
            ];
            let Some(registers) = fragment.registers(tile[0], tile[1]) else {
                return Err(Diagnosis::new(format!(
                    "`{name}` has tiles of {} x {}, which fragment {} has not",
                    tile[0], tile[1], fragment.name
                )));
            };
            // Matrix instructions take 16-bit elements in pairs.
            let packed = buffer.dtype.is_half();
            if packed {
                c_type = "unsigned";
            }
            extents.push_str(&format!("[{}]", if packed { registers / 2 } else { registers }));
        }
        Ok(format!("{c_type} {name}{extents}"))
    }

    /// The declaration of a shared array, or of a reference to its place in dynamic shared memory.
    pub(super) fn shared_declaration(
        &mut self,
        buffer: &Buffer,
        elements: i64,
    ) -> Result<(String, String), Diagnosis> {
        let c_type = self.c_type(buffer.dtype);
        if buffer.split {
            let plane = rows_of_a_plane(buffer)?.unwrap_or_else(|| vec![elements]);
            let plane: String = plane.iter().map(|e| format!("[{e}]")).collect();
            return Ok(("float".to_string(), format!("[{}]{plane}", buffer.element_bytes() / 4)));
        }
        let extents: Vec<i64> = match nested_rows(buffer) {
            Some(rows) => rows.into_iter().map(|(_, extent)| extent).collect(),
            None => vec![elements],
        };
        let extents = extents.iter().map(|e| format!("[{e}]")).collect();
        Ok((c_type.to_string(), extents))
    }
}

/// The extents of a plane of parts as an array of rows, where such an array has as many places.
fn rows_of_a_plane(buffer: &Buffer) -> Result<Option<Vec<i64>>, Diagnosis> {
    let places = shared_elements(buffer)?;
    let rows: Option<Vec<i64>> =
        nested_rows(buffer).map(|rows| rows.into_iter().map(|(_, extent)| extent).collect());
    Ok(rows.filter(|rows| rows.iter().product::<i64>() == places))
}

/// The C type of an element as it is stored.
pub(super) fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C64 => "float2",
        DType::C128 => "double2",
        DType::I32 => "int",
    }
}

fn constant(extent: &Index, buffer: &Buffer) -> Result<i64, Diagnosis> {
    extent.as_constant().ok_or_else(|| {
        Diagnosis::new(format!("an extent of `{}` is not constant", buffer.sym))
            .because("registers and shared memory are allotted when the kernel is compiled")
    })
}

/// `product + column`
pub(super) fn added(product: String, column: Text) -> Text {
    if column.text == "0" {
        return Text::new(product, Strength::Product);
    }
    let text = match column.text.strip_prefix('-') {
        Some(rest) if column.strength <= Strength::Sum => format!("{product} - {rest}"),
        _ => format!("{product} + {}", column.at_least(Strength::Sum)),
    };
    Text::new(text, Strength::Sum)
}

/// The array of arrays that a shared buffer is, outermost first: which of its dimensions each is, and how many
/// elements it has room for. `None` if its layout is anything but padded rows in some order of the dimensions.
fn nested_rows(buffer: &Buffer) -> Option<Vec<(usize, i64)>> {
    let extents = buffer.constant_extents()?;
    let Some(layout) = &buffer.layout else { return Some(extents.into_iter().enumerate().collect()) };
    if layout.offset.constant_term() != 0 || layout.offset.terms().len() > layout.axes.len() {
        return None;
    }
    let mut strides: Vec<(usize, i64)> =
        layout.axes.iter().map(|axis| layout.offset.coefficient(axis)).enumerate().collect();
    // A stable sort: of dimensions with one element, any order is right.
    strides.sort_by_key(|(_, stride)| std::cmp::Reverse(*stride));
    if strides.last()?.1 != 1 {
        return None;
    }
    let mut rows = vec![(strides[0].0, extents[strides[0].0])];
    for pair in strides.windows(2) {
        let ((_, outer), (axis, inner)) = (pair[0], pair[1]);
        if inner <= 0 || outer % inner != 0 || outer / inner < extents[axis] {
            return None;
        }
        rows.push((axis, outer / inner));
    }
    Some(rows)
}

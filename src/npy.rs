//! NumPy's `.npy` files: one matrix each.
//!
//! Format versions 1, 2 and 3, C and Fortran order, little and big endian. bf16 has no type of its own in
//! NumPy: files written through the `ml_dtypes` package describe it as `<V2`, and so do ours.
//!
//! A file is untrusted input: nothing in it makes the reader panic or allocate more than the file is long.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

use crate::file::unreadable;
use crate::matrix::Matrix;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Longest header that is read. NumPy's own limit for files it does not trust is 10000.
const LONGEST_HEADER: usize = 1 << 16;

/// Reads a file that has to hold a matrix of the given type and extents; `operand` names it in refusals.
pub fn read_operand(
    path: &Path,
    operand: &str,
    dtype: DType,
    rows: usize,
    columns: usize,
) -> Result<Matrix, Diagnosis> {
    let matrix = read(path)?;
    let at = |d: Diagnosis| d.at(format!("{operand} from {}", path.display()));
    if matrix.dtype() != dtype {
        return Err(at(Diagnosis::new(format!("the file holds {}", matrix.dtype()))
            .because(format!("this product is in {dtype}"))
            .instead(format!(
                "use --dtype {}, or convert the file with a.astype({})",
                matrix.dtype(),
                numpy_name(dtype)
            ))));
    }
    if (matrix.rows(), matrix.columns()) != (rows, columns) {
        return Err(at(Diagnosis::new(format!(
            "the file holds a {}x{} matrix where {rows}x{columns} is wanted",
            matrix.rows(),
            matrix.columns()
        ))
        .instead("give the operand as it is stored: A is MxK under layout n and KxM under t or c, B is KxN or NxK, C is MxN")));
    }
    Ok(matrix)
}

/// Reads a matrix of any supported type.
pub fn read(path: &Path) -> Result<Matrix, Diagnosis> {
    let failed = |e: io::Error| unreadable(path, &e);
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    read_from(&mut file, length).map_err(|d| d.at(path.display().to_string()))
}

/// Reads a matrix from `length` bytes of input.
pub fn read_from(input: &mut impl Read, length: u64) -> Result<Matrix, Diagnosis> {
    let broken =
        |e: io::Error| Diagnosis::new("the file ends early or cannot be read").because(e.to_string());
    let mut start = [0u8; 8];
    input.read_exact(&mut start).map_err(|_| not_npy("it is shorter than a header"))?;
    if &start[..6] != MAGIC {
        return Err(not_npy("it does not begin with \\x93NUMPY"));
    }
    let mut size = [0u8; 4];
    let header_length = match start[6] {
        1 => {
            input.read_exact(&mut size[..2]).map_err(broken)?;
            u32::from_le_bytes(size) as usize
        }
        2 | 3 => {
            input.read_exact(&mut size).map_err(broken)?;
            u32::from_le_bytes(size) as usize
        }
        version => {
            return Err(not_npy(&format!("its format version is {version}; versions 1 to 3 are known")));
        }
    };
    if header_length > LONGEST_HEADER {
        return Err(not_npy(&format!("its header of {header_length} bytes is longer than {LONGEST_HEADER}")));
    }
    let mut header = vec![0u8; header_length];
    input.read_exact(&mut header).map_err(broken)?;
    let header = Header::parse(&header)?;
    let data_start = (if start[6] == 1 { 10 } else { 12 }) + header_length as u64;
    let wanted = header.data_length()?;
    let present = length.saturating_sub(data_start);
    if present != wanted as u64 {
        return Err(Diagnosis::new(format!(
            "the file has {present} bytes of data where its header asks for {wanted}"
        ))
        .because(format!("it describes a {}x{} matrix of {}", header.rows, header.columns, header.dtype))
        .instead("write the file again with numpy.save"));
    }
    let mut data = Vec::new();
    data.try_reserve_exact(wanted)
        .map_err(|_| Diagnosis::new(format!("there is no memory for {wanted} bytes")))?;
    data.resize(wanted, 0);
    input.read_exact(&mut data).map_err(broken)?;
    if header.big_endian {
        reverse_numbers(&mut data, header.dtype);
    }
    if header.fortran_order {
        data = transposed(&data, header.columns, header.rows, header.dtype.bytes() as usize);
    }
    Ok(Matrix::dense(header.dtype, header.rows, header.columns, data))
}

/// Writes a matrix, in C order, so that either the whole file is there or the old one still is.
pub fn write(path: &Path, matrix: &Matrix) -> Result<(), Diagnosis> {
    let failed = |e: io::Error| {
        Diagnosis::new(format!("{}: cannot be written", path.display()))
            .because(e.to_string())
            .instead("choose a directory that exists, may be written and has room")
    };
    let write_whole = |target: &Path| {
        let mut output = BufWriter::new(File::create(target)?);
        write_to(&mut output, matrix)?;
        output.into_inner().map_err(io::IntoInnerError::into_error)
    };
    // A pipe or a device is written in place; renaming over it would replace it by a plain file.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return write_whole(path).map(|_| ()).map_err(failed);
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = write_whole(&part).and_then(|file| file.sync_all());
    written.and_then(|()| std::fs::rename(&part, path)).map_err(|e| {
        // The part file is of no use to anybody; that it cannot be removed either changes nothing.
        let _ = std::fs::remove_file(&part);
        failed(e)
    })
}

/// Writes the bytes of a `.npy` file.
pub fn write_to(output: &mut impl Write, matrix: &Matrix) -> io::Result<()> {
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
        descr(matrix.dtype()),
        matrix.rows(),
        matrix.columns()
    );
    // NumPy aligns the data to 64 bytes and ends the header with a newline.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    output.write_all(MAGIC)?;
    output.write_all(&[1, 0])?;
    // At most 64 + 64 characters: two numbers of 20 digits and the fixed words.
    output.write_all(&(header.len() as u16).to_le_bytes())?;
    output.write_all(header.as_bytes())?;
    for row in 0..matrix.rows() {
        output.write_all(&matrix.bytes()[matrix.row_range(row)])?;
    }
    Ok(())
}

/// What the header of a file says.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    dtype: DType,
    big_endian: bool,
    fortran_order: bool,
    rows: usize,
    columns: usize,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Header, Diagnosis> {
        let text = std::str::from_utf8(bytes).map_err(|_| not_npy("its header is not text"))?;
        let mut descr = None;
        let mut fortran_order = None;
        let mut shape = None;
        let mut reader = Literal { rest: text };
        reader.expect('{')?;
        while !reader.accept('}') {
            let key = reader.string()?;
            reader.expect(':')?;
            match key {
                "descr" => descr = Some(reader.string()?),
                "fortran_order" => fortran_order = Some(reader.boolean()?),
                "shape" => shape = Some(reader.tuple()?),
                other => return Err(not_npy(&format!("its header has the unknown key '{other}'"))),
            }
            if !reader.accept(',') {
                reader.expect('}')?;
                break;
            }
        }
        if !reader.rest.trim().is_empty() {
            return Err(not_npy("something follows the header's closing brace"));
        }
        let (Some(descr), Some(fortran_order), Some(shape)) = (descr, fortran_order, shape) else {
            return Err(not_npy("its header lacks descr, fortran_order or shape"));
        };
        let (dtype, big_endian) = element_type(descr)?;
        let [rows, columns] = shape.as_slice() else {
            return Err(Diagnosis::new(format!("the file holds an array with {} dimensions", shape.len()))
                .because("a matrix has two")
                .instead("reshape it before saving, for example with a.reshape(rows, columns)"));
        };
        Ok(Header { dtype, big_endian, fortran_order, rows: *rows, columns: *columns })
    }

    fn data_length(&self) -> Result<usize, Diagnosis> {
        self.rows
            .checked_mul(self.columns)
            .and_then(|elements| elements.checked_mul(self.dtype.bytes() as usize))
            .ok_or_else(|| not_npy(&format!("its shape {}x{} is too large", self.rows, self.columns)))
    }
}

/// A reader of the few Python literals that a header is made of.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn accept(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), Diagnosis> {
        if self.accept(wanted) { Ok(()) } else { Err(self.unexpected(&format!("'{wanted}'"))) }
    }

    fn string(&mut self) -> Result<&'a str, Diagnosis> {
        let quote = if self.accept('\'') {
            '\''
        } else if self.accept('"') {
            '"'
        } else {
            return Err(self.unexpected("a string"));
        };
        let (text, rest) =
            self.rest.split_once(quote).ok_or_else(|| self.unexpected("the end of a string"))?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, Diagnosis> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<usize>, Diagnosis> {
        let mut extents = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            extents.push(self.number()?);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(extents)
    }

    fn number(&mut self) -> Result<usize, Diagnosis> {
        self.rest = self.rest.trim_start();
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest[..digits].parse().map_err(|_| self.unexpected("a whole number"))?;
        // Python 2 wrote long integers with an L.
        self.rest = self.rest[digits..].strip_prefix('L').unwrap_or(&self.rest[digits..]);
        Ok(number)
    }

    fn unexpected(&self, wanted: &str) -> Diagnosis {
        let found: String = self.rest.trim_start().chars().take(12).collect();
        not_npy(&format!("its header has '{found}' where {wanted} is wanted"))
    }
}

/// The element type that a NumPy type string means, and whether its numbers are big-endian.
fn element_type(descr: &str) -> Result<(DType, bool), Diagnosis> {
    let (order, code) = match descr.split_at_checked(1) {
        Some((order @ ("<" | ">" | "=" | "|"), code)) => (order, code),
        _ => ("<", descr),
    };
    let dtype = match code {
        "f2" => DType::F16,
        "V2" | "bfloat16" => DType::Bf16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" => DType::C64,
        "c16" => DType::C128,
        "i4" => DType::I32,
        _ => {
            return Err(Diagnosis::new(format!("the file holds elements of NumPy type '{descr}'"))
                .because("f16, f32, f64, complex64, complex128, int32 and (as <V2) bf16 are supported")
                .instead("convert it before saving, for example with a.astype(numpy.float32)"));
        }
    };
    Ok((dtype, order == ">"))
}

/// NumPy's type string for an element type.
fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "<f2",
        DType::Bf16 => "<V2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        DType::I32 => "<i4",
    }
}

/// The name to pass to `astype`.
fn numpy_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "numpy.float16",
        DType::Bf16 => "ml_dtypes.bfloat16",
        DType::F32 => "numpy.float32",
        DType::F64 => "numpy.float64",
        DType::C64 => "numpy.complex64",
        DType::C128 => "numpy.complex128",
        DType::I32 => "numpy.int32",
    }
}

fn not_npy(because: &str) -> Diagnosis {
    Diagnosis::new("this is not a .npy file that can be used")
        .because(because)
        .instead("write it with numpy.save")
}

/// Turns big-endian numbers into little-endian ones; a complex element is two numbers.
fn reverse_numbers(data: &mut [u8], dtype: DType) {
    let number = dtype.bytes() as usize / if dtype.is_complex() { 2 } else { 1 };
    data.chunks_exact_mut(number).for_each(<[u8]>::reverse);
}

/// The transpose of a row-major `rows` x `columns` matrix, in tiles that fit the cache.
fn transposed(data: &[u8], rows: usize, columns: usize, element: usize) -> Vec<u8> {
    const TILE: usize = 32;
    let mut result = vec![0; data.len()];
    if data.is_empty() {
        // One extent may be astronomical while the other is zero.
        return result;
    }
    for row_start in (0..rows).step_by(TILE) {
        for column_start in (0..columns).step_by(TILE) {
            for row in row_start..(row_start + TILE).min(rows) {
                for column in column_start..(column_start + TILE).min(columns) {
                    let from = (row * columns + column) * element;
                    let to = (column * rows + row) * element;
                    result[to..to + element].copy_from_slice(&data[from..from + element]);
                }
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{MAGIC, read_from, read_operand, write, write_to};
    use crate::matrix::Matrix;
    use num_complex::Complex64;
    use proptest::prelude::{any, prop, proptest};
    use warpwright_core::dtype::DType;

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn read_bytes(bytes: &[u8]) -> Result<Matrix, String> {
        read_from(&mut &bytes[..], bytes.len() as u64).map_err(|d| d.to_string())
    }

    fn numbered(dtype: DType, rows: usize, columns: usize) -> Matrix {
        let mut matrix = Matrix::zeros(dtype, rows, columns, columns + 2).unwrap();
        matrix.fill(|i, j| Complex64::new((8 * i + j) as f64, i as f64 - j as f64));
        matrix
    }

    #[test]
    fn every_type_comes_back_as_it_was_written() {
        for dtype in DType::ALL {
            let matrix = numbered(dtype, 5, 7);
            let mut bytes = Vec::new();
            write_to(&mut bytes, &matrix).unwrap();
            assert_eq!(
                bytes.len() % 64,
                (35 * dtype.bytes() as usize) % 64,
                "the data is aligned to 64 bytes"
            );
            assert_eq!(read_bytes(&bytes).unwrap(), matrix.with_stride(7).unwrap(), "{dtype}");
        }
    }

    #[test]
    fn empty_matrices_are_files_too() {
        let mut bytes = Vec::new();
        write_to(&mut bytes, &Matrix::zeros(DType::F64, 0, 3, 3).unwrap()).unwrap();
        let matrix = read_bytes(&bytes).unwrap();
        assert_eq!((matrix.rows(), matrix.columns()), (0, 3));
    }

    #[test]
    fn fortran_order_and_big_endian_numbers_are_turned_round() {
        let data: Vec<u8> = [1i32, 4, 2, 5, 3, 6].iter().flat_map(|n| n.to_be_bytes()).collect();
        let bytes = file(2, "{'shape': (2, 3), 'fortran_order': True, 'descr': '>i4'}\n", &data);
        let matrix = read_bytes(&bytes).unwrap();
        let values: Vec<f64> = (0..6).map(|e| matrix.get(e / 3, e % 3).re).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn an_astronomical_extent_beside_a_zero_one_is_read_at_once() {
        let bytes =
            file(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (4611686018427387904, 0)}", &[]);
        assert_eq!(read_bytes(&bytes).unwrap().rows(), 1 << 62);
    }

    #[test]
    fn complex_big_endian_swaps_each_part() {
        let data: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|n| n.to_be_bytes()).collect();
        let bytes = file(1, "{'descr': '>c16', 'fortran_order': False, 'shape': (1, 1), }", &data);
        assert_eq!(read_bytes(&bytes).unwrap().get(0, 0), Complex64::new(1.5, -2.0));
    }

    #[test]
    fn refusals_say_what_to_do() {
        let header = |descr: &str, shape: &str| {
            file(1, &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"), &[0; 16])
        };
        let refused = |bytes: &[u8]| read_bytes(bytes).unwrap_err();
        assert!(refused(b"PK\x03\x04 and so on").contains("does not begin with"));
        assert!(refused(&header("<u1", "(4, 4)")).contains("astype(numpy.float32)"));
        assert!(refused(&header("<f4", "(4,)")).contains("1 dimensions"));
        assert!(refused(&header("<f4", "(5, 5)")).contains("16 bytes of data where its header asks for 100"));
        assert!(refused(&header("<f4", "(1, 1)")).contains("asks for 4"));
        assert!(refused(&header("<f8", "(4611686018427387904, 8)")).contains("too large"));
        assert!(refused(&header("<f8", "(99999999999999999999, 8)")).contains("whole number"));
        assert!(refused(&file(1, "{'descr': '<f4', 'shape': (1, 1)}", &[0; 4])).contains("lacks"));
        assert!(refused(&file(9, "", &[])).contains("version is 9"));
    }

    #[test]
    fn an_operand_has_to_fit_the_problem() {
        let directory = std::env::temp_dir().join(format!("warpwright-npy-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("a.npy");
        write(&path, &numbered(DType::F32, 3, 4)).unwrap();
        assert!(read_operand(&path, "A", DType::F32, 3, 4).is_ok());
        let message = read_operand(&path, "A", DType::Bf16, 3, 4).unwrap_err().to_string();
        assert!(message.contains("holds f32") && message.contains("--dtype f32"), "{message}");
        let message = read_operand(&path, "A", DType::F32, 4, 3).unwrap_err().to_string();
        assert!(message.contains("3x4 matrix where 4x3 is wanted"), "{message}");
        let left: Vec<_> = std::fs::read_dir(&directory).unwrap().collect();
        assert_eq!(left.len(), 1, "no part file stays behind");
        #[cfg(target_os = "linux")]
        assert!(write(std::path::Path::new("/dev/full"), &numbered(DType::F32, 1, 1)).is_err());
        assert!(write(&directory.join("missing/a.npy"), &numbered(DType::F32, 1, 1)).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    proptest! {
        #[test]
        fn no_input_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_bytes(&bytes);
        }

        #[test]
        fn no_header_makes_the_reader_panic(
            version in 0u8..5,
            header in "[{}()',: a-z0-9<>|LTrueFalsé]{0,80}",
            data in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let _ = read_bytes(&file(version, &header, &data));
        }

        #[test]
        fn no_damage_to_a_good_file_makes_the_reader_panic(at in 0usize..160, byte in any::<u8>(), cut in 0usize..160) {
            let mut bytes = Vec::new();
            write_to(&mut bytes, &numbered(DType::F16, 2, 5)).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = read_bytes(&bytes);
            bytes.truncate(cut);
            let _ = read_bytes(&bytes);
        }
    }
}

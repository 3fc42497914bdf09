//! Formats a program: reads the text form from a file and prints it as the printer would.
fn main() {
    let path = std::env::args().nth(1).expect("usage: fmt FILE");
    let text = std::fs::read_to_string(path).expect("cannot read");
    match warpwright_core::ir::parse::program(&text) {
        Ok(p) => print!("{p}"),
        Err(e) => eprintln!("{e}"),
    }
}

//! Text to tokens.

use crate::diag::Diagnosis;

/// A token with the place where it starts.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub line: u32,
    pub column: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Name(String),
    /// An integer literal.
    Int(i64),
    /// A literal with a fraction or exponent.
    Float(f64),
    /// An operator or bracket.
    Mark(&'static str),
    End,
}

impl Kind {
    pub fn text(&self) -> String {
        match self {
            Kind::Name(n) => n.clone(),
            Kind::Int(i) => i.to_string(),
            Kind::Float(x) => x.to_string(),
            Kind::Mark(m) => (*m).to_string(),
            Kind::End => "end of text".into(),
        }
    }
}

/// Longer marks first, so that the first that fits is the right one.
const MARKS: [&str; 38] = [
    "max=", "min=", "..", "+:", "+=", "->", "=>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "[", "]",
    "{", "}", ",", ":", ";", "@", "=", "+", "-", "*", "/", "%", "<", ">", "!", "?", ".", "&", "|", "^", "~",
];

/// The largest integer literal; products of a few of these still fit 64 bits.
const LARGEST: i64 = 1 << 48;

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Diagnosis> {
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line_number = number as u32 + 1;
        let code = line.split('#').next().unwrap_or("");
        let mut at = 0;
        while let Some(c) = code[at..].chars().next() {
            if c.is_whitespace() {
                at += c.len_utf8();
                continue;
            }
            let place = |kind| Token { kind, line: line_number, column: at as u32 + 1 };
            let rest = &code[at..];
            let (kind, length) = one(rest).ok_or_else(|| {
                Diagnosis::new(format!("`{c}` cannot start anything"))
                    .at(format!("line {line_number}:{}", at + 1))
            })?;
            let kind = kind.map_err(|e| e.at(format!("line {line_number}:{}", at + 1)))?;
            out.push(place(kind));
            at += length;
        }
    }
    let line = text.lines().count() as u32 + 1;
    out.push(Token { kind: Kind::End, line, column: 1 });
    Ok(out)
}

/// The token at the start of `rest` and its length; `None` if nothing can start there.
fn one(rest: &str) -> Option<(Result<Kind, Diagnosis>, usize)> {
    let first = rest.chars().next()?;
    if let Some(mark) = MARKS.iter().find(|m| rest.starts_with(**m)) {
        return Some((Ok(Kind::Mark(mark)), mark.len()));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Some((Ok(Kind::Name(rest[..length].into())), length));
    }
    first.is_ascii_digit().then(|| number(rest))
}

fn number(rest: &str) -> (Result<Kind, Diagnosis>, usize) {
    let digits =
        |from: usize| from + rest[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - from);
    let mut end = digits(0);
    let mut float = false;
    let bytes = rest.as_bytes();
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        float = true;
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            float = true;
            end = digits(end + 1 + sign);
        }
    }
    let text = &rest[..end];
    if float {
        return (text.parse().map(Kind::Float).map_err(|_| Diagnosis::new("not a number")), end);
    }
    let kind =
        match text.parse::<i64>() {
            Ok(value) if value <= LARGEST => Ok(Kind::Int(value)),
            _ => Err(Diagnosis::new(format!("the integer {text} is too large"))
                .because("the largest literal is 2^48")),
        };
    (kind, end)
}

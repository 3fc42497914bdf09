//! Charts as inline SVG: lines over two axes, and maps of cells. Colours and fonts are those of [`super::page`].

use super::page::escaped;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it counts.
    pub label: String,
    /// Its ends.
    pub range: (f64, f64),
    /// Whether equal distances are equal ratios.
    pub logarithmic: bool,
    /// Where it is marked, and how.
    pub ticks: Vec<(f64, String)>,
}

/// A line through points.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its points, in order.
    pub points: Vec<(f64, f64)>,
}

/// Lines over two axes. The first four have colours and marks of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows, for those who cannot see it.
    pub label: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// The lines.
    pub lines: Vec<Line>,
}

/// Values over two sequences, as cells that are the stronger the larger the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// What it shows, for those who cannot see it.
    pub label: String,
    /// What columns count, and each of them.
    pub columns: (String, Vec<String>),
    /// What rows count, and each of them.
    pub rows: (String, Vec<String>),
    /// A value from 0 to 1 for each cell that has one, row by row, and its text.
    pub cells: Vec<Vec<Option<(f64, String)>>>,
}

/// A bar for each of several values, and perhaps a line that they are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What it shows, for those who cannot see it.
    pub label: String,
    /// Names, values that are not negative, and what is written beside their bars.
    pub bars: Vec<(String, f64, String)>,
    /// Where the line is.
    pub reference: Option<f64>,
}

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 36.0;

impl Axis {
    /// Where a value stands, 0 at the beginning and 1 at the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let on = |v: f64| if self.logarithmic { v.max(f64::MIN_POSITIVE).ln() } else { v };
        let (from, to) = (on(self.range.0), on(self.range.1));
        if to > from { (on(value) - from) / (to - from) } else { 0.5 }
    }
}

impl Chart {
    /// The picture.
    pub fn svg(&self) -> String {
        let x = |value: f64| LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM);
        let mut svg = open(WIDTH, HEIGHT, &self.label);
        for (value, text) in &self.y.ticks {
            let at = y(*value);
            svg += &format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                WIDTH - RIGHT,
                LEFT - 5.0,
                at + 4.0,
                escaped(text)
            );
        }
        for (value, text) in &self.x.ticks {
            svg += &format!(
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                x(*value),
                HEIGHT - BOTTOM + 14.0,
                escaped(text)
            );
        }
        svg += &format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 5.0,
            escaped(&self.x.label)
        );
        // The first lies on top.
        for (style, line) in self.lines.iter().enumerate().rev() {
            let at: Vec<(f64, f64)> = line.points.iter().map(|(a, b)| (x(*a), y(*b))).collect();
            let path: Vec<String> = at.iter().map(|(a, b)| format!("{a:.1},{b:.1}")).collect();
            svg += &format!(
                "<g class=\"s{}\"><polyline class=\"line\" points=\"{}\"/>\n",
                style % 4,
                path.join(" ")
            );
            for ((a, b), point) in at.iter().zip(&line.points) {
                svg += &format!(
                    "<g><title>{}</title>{}</g>\n",
                    escaped(&format!("{}: {} at {}", line.name, short(point.1), short(point.0))),
                    mark(style, *a, *b)
                );
            }
            svg += "</g>\n";
        }
        svg + "</svg>\n"
    }
}

impl Map {
    /// The picture.
    pub fn svg(&self) -> String {
        let across = (WIDTH - LEFT - RIGHT) / self.columns.1.len().max(1) as f64;
        // Cells are no higher than wide, and no higher than a line of text wants.
        let down = across.min(22.0);
        let height = TOP + down * self.rows.1.len() as f64 + BOTTOM;
        let mut svg = open(WIDTH, height, &self.label);
        for (row, cells) in self.cells.iter().enumerate() {
            let y = TOP + down * row as f64;
            for (column, cell) in cells.iter().enumerate() {
                let Some((value, text)) = cell else { continue };
                let x = LEFT + across * column as f64;
                let strength = value.clamp(0.0, 1.0);
                let on = if strength > 0.55 { " on" } else { "" };
                svg += &format!(
                    "<rect class=\"heat\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill-opacity=\"{:.2}\"/>\
                     <text class=\"cell{on}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
                    across - 1.0,
                    down - 1.0,
                    0.06 + 0.94 * strength,
                    x + across / 2.0,
                    y + down / 2.0 + 3.0,
                    escaped(text)
                );
            }
        }
        for (row, name) in self.rows.1.iter().enumerate() {
            let y = TOP + down * (row as f64 + 0.5) + 4.0;
            svg += &format!(
                "<text x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>\n",
                LEFT - 5.0,
                escaped(name)
            );
        }
        let bottom = height - BOTTOM + 14.0;
        for (column, name) in self.columns.1.iter().enumerate() {
            let x = LEFT + across * (column as f64 + 0.5);
            svg += &format!(
                "<text x=\"{x:.1}\" y=\"{bottom:.1}\" text-anchor=\"middle\">{}</text>\n",
                escaped(name)
            );
        }
        svg += &format!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(11 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
            (LEFT + WIDTH - RIGHT) / 2.0,
            height - 5.0,
            escaped(&self.columns.0),
            (TOP + height - BOTTOM) / 2.0,
            escaped(&self.rows.0)
        );
        svg + "</svg>\n"
    }
}

impl Bars {
    /// The picture.
    pub fn svg(&self) -> String {
        // Names, then bars, then room for what is written beside the longest.
        let longest = self.bars.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        let (left, row) = ((5.9 * longest as f64).clamp(170.0, 220.0), 17.0);
        let room = WIDTH - left - 44.0;
        let values = self.bars.iter().map(|(_, value, _)| *value);
        let most = values.chain(self.reference).fold(f64::MIN_POSITIVE, f64::max);
        let height = row * self.bars.len() as f64 + 4.0;
        let mut svg = open(WIDTH, height, &self.label);
        if let Some(reference) = self.reference {
            let x = left + room * reference / most;
            svg += &format!(
                "<line class=\"reference\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{height:.1}\"/>\n"
            );
        }
        for (number, (name, value, text)) in self.bars.iter().enumerate() {
            let (y, length) = (row * number as f64, room * value / most);
            svg += &format!(
                "<text x=\"0\" y=\"{0:.1}\">{1}</text><rect class=\"bar\" x=\"{left}\" y=\"{2:.1}\" width=\"{length:.1}\" \
                 height=\"12\"/><text class=\"name\" x=\"{3:.1}\" y=\"{0:.1}\">{4}</text>\n",
                y + 13.0,
                escaped(name),
                y + 3.0,
                left + length + 4.0,
                escaped(text)
            );
        }
        svg + "</svg>\n"
    }
}

/// Pictures as a file of their own, one below the other under a title, with the colours that they have in pages.
pub fn document(title: &str, pictures: &[String]) -> String {
    const HEAD: f64 = 24.0;
    let height = HEAD + HEIGHT * pictures.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{0}\" height=\"{1}\">\n\
         <title>{2}</title>\n<style>{ALONE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n<text x=\"6\" y=\"14\">{2}</text>\n",
        2.0 * WIDTH,
        2.0 * height,
        escaped(title)
    );
    for (number, picture) in pictures.iter().enumerate() {
        let y = HEAD + HEIGHT * number as f64;
        svg += &format!("<svg y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\">\n{picture}</svg>\n");
    }
    svg + "</svg>\n"
}

/// The part of the style of pages that pictures need, light or dark as the reader likes.
const ALONE: &str = "svg{--paper:#fff;--ink:#1c1c1e;--quiet:#5f6368;--rule:#dcdcdc;--s0:#0b5cad;--s1:#b3470b;--s2:#1d7a4c;--s3:#7a3fa8}\
@media (prefers-color-scheme:dark){svg{--paper:#16181c;--ink:#e8e8ea;--quiet:#a0a4ab;--rule:#34373d;--s0:#6db3f8;--s1:#f2a05e;\
--s2:#67cf98;--s3:#c79af0}}text{font:8px system-ui,sans-serif;fill:var(--quiet)}.paper{fill:var(--paper)}\
.grid{stroke:var(--rule)}.line{fill:none;stroke:currentColor;stroke-width:1.6}.mark{fill:currentColor}\
.s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}\
.roof,.sample{stroke:var(--ink);stroke-width:1.2}.dashed{stroke-dasharray:4 3}.leader{stroke:var(--quiet);stroke-width:.5}\
.path{fill:none;stroke:currentColor;stroke-opacity:.45}\
.name{fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:2.5}";

/// The beginning of a picture of this size.
pub fn open(width: f64, height: f64, label: &str) -> String {
    format!("<svg viewBox=\"0 0 {width} {height:.1}\" role=\"img\" aria-label=\"{}\">\n", escaped(label))
}

/// The mark of a point: a disc, a square, a triangle or a diamond.
pub(super) fn mark(style: usize, x: f64, y: f64) -> String {
    match style % 4 {
        0 => format!("<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/>"),
        1 => format!(
            "<rect class=\"mark\" x=\"{:.1}\" y=\"{:.1}\" width=\"4.8\" height=\"4.8\"/>",
            x - 2.4,
            y - 2.4
        ),
        2 => format!("<path class=\"mark\" d=\"M{x:.1} {:.1}l3.2 5.6h-6.4z\"/>", y - 3.2),
        _ => format!("<path class=\"mark\" d=\"M{x:.1} {:.1}l3.2 3.4l-3.2 3.4l-3.2 -3.4z\"/>", y - 3.4),
    }
}

/// A number for people: whole where it is large, else with a digit or three after the point.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 || value.fract() == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Bars, Chart, Line, Map, short};

    fn axis(range: (f64, f64), logarithmic: bool) -> Axis {
        Axis { label: "a < b".to_string(), range, logarithmic, ticks: vec![(range.0, "low".to_string())] }
    }

    #[test]
    fn the_ends_of_an_axis_are_at_the_ends_and_equal_ratios_at_equal_distances() {
        assert_eq!([0.0, 25.0, 100.0].map(|v| axis((0.0, 100.0), false).place(v)), [0.0, 0.25, 1.0]);
        let log = axis((1e3, 1e7), true);
        assert!((log.place(1e5) - 0.5).abs() < 1e-12 && log.place(1e3) == 0.0);
        assert_eq!(axis((5.0, 5.0), false).place(5.0), 0.5);
    }

    #[test]
    fn a_point_at_the_corner_is_drawn_at_the_corner() {
        let chart = Chart {
            label: "\"l\"".to_string(),
            x: axis((0.0, 64.0), false),
            y: axis((0.0, 100.0), false),
            lines: vec![Line { name: "n & m".to_string(), points: vec![(0.0, 0.0), (64.0, 100.0)] }],
        };
        let svg = chart.svg();
        assert!(svg.contains("points=\"40.0,194.0 348.0,8.0\""), "{svg}");
        assert!(svg.contains("n &amp; m: 100 at 64") && svg.contains("a &lt; b"));
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn a_map_has_a_cell_for_each_value_and_none_where_there_is_none() {
        let map = Map {
            label: "l".to_string(),
            columns: ("tn".to_string(), vec!["1".to_string(), "2".to_string()]),
            rows: ("tm".to_string(), vec!["4".to_string()]),
            cells: vec![vec![Some((1.0, "99".to_string())), None]],
        };
        let svg = map.svg();
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(svg.contains("fill-opacity=\"1.00\"") && svg.contains(">99</text>"), "{svg}");
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_the_line_may_be_beyond_them() {
        let bars = vec![("a".to_string(), 1.0, "1".to_string()), ("b".to_string(), 3.0, "3".to_string())];
        let svg = Bars { label: "l".to_string(), bars, reference: Some(4.0) }.svg();
        assert!(svg.contains("width=\"36.5\"") && svg.contains("width=\"109.5\""), "{svg}");
        assert!(svg.contains("x1=\"316.0\""), "{svg}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1e6, 64.0, 95.25, 0.1234].map(short), ["1000000", "64", "95.2", "0.123"]);
    }
}

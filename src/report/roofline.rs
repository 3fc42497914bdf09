//! The roofline plot as inline SVG: how fast something runs over how many operations it does for each byte that it moves,
//! below the lines that no program crosses.
//!
//! Both axes are logarithmic, so that a bandwidth is a line that rises by one decade for each decade (a slope) and a rate of
//! arithmetic is a level line (a ceiling). A slope ends where it meets the highest ceiling, a ceiling begins where it meets
//! the steepest slope. Of points that lie close together the labels stand apart, each with a line to its point. Colours and
//! fonts are those of [`super::page`].

use super::page::escaped;
use super::svg::{Axis, mark, open};

/// A bound by the traffic of one level of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Slope {
    /// What moves the bytes, and how fast: `memory 4.8 TB/s`.
    pub name: String,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// A bound, or something to compare with, that does not depend on traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// What it is the rate of, and the rate.
    pub name: String,
    /// Operations per second.
    pub flops_per_second: f64,
}

/// Something that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What stands beside it: a number or a short word.
    pub label: String,
    /// What it is, shown where a pointer rests on it and read to those who cannot see it.
    pub name: String,
    /// Operations for each byte that moves through the level of the slope that it is compared with.
    pub flops_per_byte: f64,
    /// Operations per second.
    pub flops_per_second: f64,
}

/// Points of one kind, with a mark and a colour of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What they have in common: `measured`.
    pub name: String,
    /// Whether a path leads through them in their order.
    pub joined: bool,
    /// Those whose numbers are positive and finite are drawn; others have no place on logarithmic axes.
    pub points: Vec<Point>,
}

/// The plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    /// What it shows, for those who cannot see it.
    pub label: String,
    /// The bandwidths.
    pub slopes: Vec<Slope>,
    /// The rates: the first as a full line, others dashed. Their names stand above the picture.
    pub ceilings: Vec<Ceiling>,
    /// The points; the first four series have marks of their own, in the order of the legend of [`super::page::figure`].
    pub series: Vec<Series>,
}

const WIDTH: f64 = 420.0;
/// From the upper end of the frame to its lower one.
const HEIGHT: f64 = 264.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 10.0;
/// Room above the frame, and more for the name of each ceiling.
const TOP: f64 = 8.0;
const CEILING: f64 = 14.0;
/// The length of the piece of a line that stands beside its name.
const SAMPLE: f64 = 24.0;
const BOTTOM: f64 = 36.0;
/// The width of a character and the height of a line, in the units of the picture, a little more than they are.
const LETTER: f64 = 5.6;
const LINE: f64 = 10.0;

impl Roofline {
    /// The picture.
    pub fn svg(&self) -> String {
        self.drawn(self.intensities(), self.rates(2.0))
    }

    /// The picture from near by: its axes span the points and the ceilings alone, and not where the lines meet.
    pub fn close_up(&self) -> String {
        let (least, most) = ends(self.points().map(|p| p.flops_per_byte));
        self.drawn(intensity_axis(least / 1.3, most * 1.3), self.rates(1.15))
    }

    fn drawn(&self, x: Axis, y: Axis) -> String {
        let frame = Frame { x, y, top: TOP + CEILING * self.ceilings.len() as f64 };
        let mut svg = open(WIDTH, frame.bottom() + BOTTOM, &self.label);
        svg += &frame.grid();
        let mut taken = Vec::new();
        svg += &self.roof(&frame, &mut taken);
        let places: Vec<Vec<(&Point, [f64; 2])>> = self.series.iter().map(|s| frame.places(s)).collect();
        taken.extend(places.iter().flatten().map(|(_, [x, y])| Area::around(*x, *y, 7.0, 7.0)));
        // The first series lies on top; the paths lie below all points.
        for (style, (series, places)) in self.series.iter().zip(&places).enumerate().rev() {
            if series.joined {
                let path: Vec<String> = places.iter().map(|(_, [x, y])| format!("{x:.1},{y:.1}")).collect();
                svg += &format!(
                    "<g class=\"s{}\"><polyline class=\"path\" points=\"{}\"/></g>\n",
                    style % 4,
                    path.join(" ")
                );
            }
        }
        for (style, (series, places)) in self.series.iter().zip(&places).enumerate().rev() {
            svg += &format!("<g class=\"s{}\">\n", style % 4);
            for (point, [x, y]) in places {
                let title = match series.name.as_str() {
                    "" => point.name.clone(),
                    name => format!("{}, {name}", point.name),
                };
                svg += &format!("<g><title>{}</title>{}</g>\n", escaped(&title), mark(style, *x, *y));
            }
            svg += "</g>\n";
        }
        let inside = Area { left: LEFT, right: WIDTH - RIGHT, top: frame.top, bottom: frame.bottom() };
        for (point, at) in places.iter().flatten() {
            svg += &label(&point.label, *at, &inside, &mut taken);
        }
        svg + "</svg>\n"
    }

    /// The points that can be drawn.
    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|s| &s.points).filter(|p| p.is_drawn())
    }

    fn steepest(&self) -> Option<f64> {
        self.slopes.iter().map(|s| s.bytes_per_second).filter(|b| *b > 0.0).reduce(f64::max)
    }

    fn highest(&self) -> Option<f64> {
        self.ceilings.iter().map(|c| c.flops_per_second).filter(|f| *f > 0.0).reduce(f64::max)
    }

    /// The axis of operations per byte: all points, all ridges, and enough of the steepest slope to write on.
    fn intensities(&self) -> Axis {
        let ridges = self
            .highest()
            .into_iter()
            .flat_map(|highest| self.slopes.iter().map(move |s| highest / s.bytes_per_second));
        let written =
            self.highest().zip(self.steepest()).map(|(highest, steepest)| highest / steepest / 10.0);
        let (least, most) = ends(self.points().map(|p| p.flops_per_byte).chain(ridges).chain(written));
        intensity_axis(least / 2.0, most * 2.5)
    }

    /// The axis of rates: all points and ceilings, and so many times more at both ends.
    fn rates(&self, room: f64) -> Axis {
        let ceilings = self.ceilings.iter().map(|c| c.flops_per_second);
        let (least, most) = ends(self.points().map(|p| p.flops_per_second).chain(ceilings));
        let range = (least / room, most * room);
        let (scale, unit) = match most {
            v if v >= 1e12 => (1e12, "TFLOP/s"),
            v if v >= 1e9 => (1e9, "GFLOP/s"),
            _ => (1e6, "MFLOP/s"),
        };
        Axis { label: unit.to_string(), range, logarithmic: true, ticks: ticks(range, scale) }
    }

    /// Slopes and ceilings with their names; where names stand is taken.
    fn roof(&self, frame: &Frame, taken: &mut Vec<Area>) -> String {
        let mut svg = String::new();
        for (number, ceiling) in self.ceilings.iter().enumerate() {
            let rate = ceiling.flops_per_second;
            let from =
                self.steepest().map_or(frame.x.range.0, |steepest| (rate / steepest).max(frame.x.range.0));
            let [[x, y], [end, _]] = [frame.at(from, rate), frame.at(frame.x.range.1, rate)];
            let dashed = if number > 0 { " dashed" } else { "" };
            svg += &format!(
                "<line class=\"roof{dashed}\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{end:.1}\" y2=\"{y:.1}\"/>\n"
            );
            // What the line is stands above the frame, where no point can be, with a piece of it.
            let base = TOP + CEILING * (number as f64 + 0.6);
            svg += &format!(
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <line class=\"sample{dashed}\" x1=\"{:.1}\" y1=\"{base:.1}\" x2=\"{end:.1}\" y2=\"{base:.1}\"/>\n",
                end - SAMPLE - 5.0,
                base + 3.7,
                escaped(&ceiling.name),
                end - SAMPLE
            );
        }
        for slope in &self.slopes {
            let bandwidth = slope.bytes_per_second;
            let (left, right) = frame.x.range;
            let from = left.max(frame.y.range.0 / bandwidth);
            let to = self.highest().map_or(right, |highest| (highest / bandwidth).min(right));
            if to <= from {
                continue;
            }
            let [[x, y], [end, top]] = [from, to].map(|x| frame.at(x, x * bandwidth));
            let angle = (y - top).atan2(end - x);
            svg += &format!(
                "<line class=\"roof\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{end:.1}\" y2=\"{top:.1}\"><title>{}</title></line>\n",
                escaped(&slope.name)
            );
            let length = LETTER * slope.name.chars().count() as f64;
            if (end - x).hypot(y - top) < length + 12.0 {
                continue;
            }
            svg += &format!(
                "<text class=\"name\" transform=\"translate({:.1} {:.1}) rotate({:.1})\" text-anchor=\"end\">{}</text>\n",
                end - 8.0 * angle.cos() - 4.0 * angle.sin(),
                top + 8.0 * angle.sin() - 4.0 * angle.cos(),
                -angle.to_degrees(),
                escaped(&slope.name)
            );
            for letter in 0..slope.name.chars().count() {
                let along = 8.0 + LETTER * (letter as f64 + 0.5);
                let (x, y) = (end - along * angle.cos(), top + along * angle.sin());
                taken.push(Area::around(x - 8.0 * angle.sin(), y - 8.0 * angle.cos(), LETTER, LINE));
            }
        }
        svg
    }
}

impl Point {
    fn is_drawn(&self) -> bool {
        [self.flops_per_byte, self.flops_per_second].iter().all(|v| v.is_finite() && *v > 0.0)
    }
}

/// The axis of operations per byte.
fn intensity_axis(from: f64, to: f64) -> Axis {
    let label = "floating-point operations per byte".to_string();
    Axis { label, range: (from, to), logarithmic: true, ticks: ticks((from, to), 1.0) }
}

/// The axes, and where values stand between them.
struct Frame {
    x: Axis,
    y: Axis,
    /// Where it begins.
    top: f64,
}

impl Frame {
    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT), self.bottom() - self.y.place(y) * HEIGHT]
    }

    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    fn places<'a>(&self, series: &'a Series) -> Vec<(&'a Point, [f64; 2])> {
        let drawn = series.points.iter().filter(|p| p.is_drawn());
        drawn.map(|p| (p, self.at(p.flops_per_byte, p.flops_per_second))).collect()
    }

    fn grid(&self) -> String {
        let (right, bottom) = (WIDTH - RIGHT, self.bottom());
        let mut svg = String::new();
        for (value, text) in &self.y.ticks {
            let [_, y] = self.at(self.x.range.0, *value);
            svg += &format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                LEFT - 5.0,
                y + 4.0,
                escaped(text)
            );
        }
        for (value, text) in &self.x.ticks {
            let [x, _] = self.at(*value, self.y.range.0);
            svg += &format!(
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
                self.top,
                bottom + 14.0,
                escaped(text)
            );
        }
        svg + &format!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text x=\"0\" y=\"{:.1}\">{}</text>\n",
            (LEFT + right) / 2.0,
            bottom + 31.0,
            escaped(&self.x.label),
            self.top - 7.0,
            escaped(&self.y.label)
        )
    }
}

/// The least and the largest of some values; a decade from 1 where there are none.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let good = values.filter(|v| v.is_finite() && *v > 0.0).map(|v| (v, v));
    good.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((1.0, 10.0))
}

/// The marks of a logarithmic axis, in units of `scale`: powers of ten, and the more between them the fewer there are.
fn ticks((from, to): (f64, f64), scale: f64) -> Vec<(f64, String)> {
    let steps: &[f64] = match (to / from).log10() {
        decades if decades > 2.2 => &[1.0],
        decades if decades > 1.1 => &[1.0, 2.0, 5.0],
        _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
    };
    let decades = (from / scale).log10().floor() as i32..=(to / scale).log10().ceil() as i32;
    let values = decades.flat_map(|decade| steps.iter().map(move |step| (decade, *step)));
    let ticks = values.map(|(decade, step)| {
        let value = step * 10f64.powi(decade);
        let digits = usize::try_from(i32::from(step == 1.5) - decade).unwrap_or(0);
        (value * scale, format!("{value:.digits$}"))
    });
    ticks.filter(|(value, _)| (from..=to).contains(value)).collect()
}

/// A part of the picture in which something stands.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn around(x: f64, y: f64, width: f64, height: f64) -> Area {
        let (across, down) = (width / 2.0, height / 2.0);
        Area { left: x - across, right: x + across, top: y - down, bottom: y + down }
    }

    fn meets(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn is_inside(&self, frame: &Area) -> bool {
        self.left >= frame.left
            && self.right <= frame.right
            && self.top >= frame.top
            && self.bottom <= frame.bottom
    }
}

/// A label in the nearest place around a point that is not taken; further away it has a line to the point.
fn label(text: &str, [x, y]: [f64; 2], frame: &Area, taken: &mut Vec<Area>) -> String {
    const DIRECTIONS: u32 = 16;
    if text.is_empty() {
        return String::new();
    }
    let width = LETTER * text.chars().count() as f64 + 2.0;
    let rings = [10.0, 17.0, 25.0, 34.0, 44.0, 56.0];
    let tries = rings.into_iter().flat_map(|far| (0..DIRECTIONS).map(move |d| (far, d)));
    let place = |(far, direction): (f64, u32)| {
        let angle = std::f64::consts::TAU * f64::from(direction) / f64::from(DIRECTIONS);
        // From above the point round it; wide texts need more room beside it than above.
        let (right, up) = (angle.sin() * (far + width / 2.0 - 4.0), angle.cos() * far);
        (far, Area::around(x + right, y - up, width, LINE))
    };
    let free = |(_, area): &(f64, Area)| area.is_inside(frame) && !taken.iter().any(|t| t.meets(area));
    let found = tries.map(place).find(free);
    let (far, area) = found.unwrap_or((rings[0], Area::around(x, y - rings[0], width, LINE)));
    taken.push(area);
    let (across, down) = ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0);
    let leader = if far > rings[0] {
        format!("<line class=\"leader\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{across:.1}\" y2=\"{down:.1}\"/>")
    } else {
        String::new()
    };
    format!(
        "{leader}<text class=\"name\" x=\"{across:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
        down + 3.7,
        escaped(text)
    )
}

#[cfg(test)]
mod tests {
    use super::{Area, Ceiling, Point, Roofline, Series, Slope, label, ticks};

    fn point(label: &str, flops_per_byte: f64, flops_per_second: f64) -> Point {
        Point { label: label.to_string(), name: format!("rung {label}"), flops_per_byte, flops_per_second }
    }

    fn plot(points: Vec<Point>) -> Roofline {
        Roofline {
            label: "\"l\"".to_string(),
            slopes: vec![Slope { name: "memory & more".to_string(), bytes_per_second: 1e12 }],
            ceilings: vec![
                Ceiling { name: "f32 < all".to_string(), flops_per_second: 1e13 },
                Ceiling { name: "compared".to_string(), flops_per_second: 4e12 },
            ],
            series: vec![Series { name: "measured".to_string(), joined: true, points }],
        }
    }

    /// The values of an attribute, in order.
    fn values(svg: &str, class: &str, attribute: &str) -> Vec<f64> {
        let of = |line: &str| {
            let (_, rest) = line.split_once(&format!(" {attribute}=\"")).expect("the attribute");
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        svg.split('<').filter(|e| e.contains(&format!("class=\"{class}"))).map(of).collect()
    }

    #[test]
    fn slope_and_ceiling_meet_where_bandwidth_times_intensity_is_the_rate() {
        let svg = plot(vec![point("1", 10.0, 1e13), point("2", 1.0, 1e12)]).svg();
        // The first ceiling, the dashed one, the slope.
        let [starts, ends] = ["x1", "x2"].map(|a| values(&svg, "roof", a));
        let [from, to] = ["y1", "y2"].map(|a| values(&svg, "roof", a));
        assert_eq!((starts[0], from[0]), (ends[2], to[2]), "the ridge: {svg}");
        // A point on the ridge is drawn there, and one on the slope on the slope.
        let [across, down] = ["cx", "cy"].map(|a| values(&svg, "mark", a));
        assert_eq!((across[0], down[0]), (starts[0], from[0]));
        let along = (across[1] - starts[2]) / (ends[2] - starts[2]);
        assert!((down[1] - (from[2] + along * (to[2] - from[2]))).abs() < 0.15, "{svg}");
        // The other ceiling is dashed, below, and begins on the slope too.
        let along = (starts[1] - starts[2]) / (ends[2] - starts[2]);
        assert!((from[1] - (from[2] + along * (to[2] - from[2]))).abs() < 0.15, "{svg}");
        assert_eq!(svg.matches("roof dashed").count(), 1);
    }

    #[test]
    fn the_path_goes_through_the_points_in_their_order() {
        let points = vec![point("1", 1.0, 1e11), point("2", 5.0, 1e12), point("3", 2.0, 5e11)];
        let svg = plot(points.clone()).svg();
        let [across, down] = ["cx", "cy"].map(|a| values(&svg, "mark", a));
        let path: Vec<String> = across.iter().zip(&down).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        assert!(svg.contains(&format!("points=\"{}\"", path.join(" "))), "{svg}");
        assert!(across[0] < across[2] && across[2] < across[1] && down[1] < down[2] && down[2] < down[0]);
        let mut loose = plot(points);
        loose.series[0].joined = false;
        assert!(!loose.svg().contains("polyline"));
    }

    #[test]
    fn a_close_up_spans_the_points_and_leaves_lines_out_that_are_elsewhere() {
        let near = plot(vec![point("1", 500.0, 6e12), point("2", 600.0, 7e12)]);
        let distance = |svg: &str| {
            let across = values(svg, "mark", "cx");
            across[1] - across[0]
        };
        assert!(distance(&near.close_up()) > 5.0 * distance(&near.svg()));
        assert_eq!(near.svg().matches("class=\"roof\"").count(), 2);
        assert_eq!(near.close_up().matches("class=\"roof\"").count(), 1, "the ridge is at 10");
    }

    #[test]
    fn what_has_no_place_on_the_axes_is_left_out() {
        let odd = [(0.0, 1e3), (1e-4, 0.0), (f64::NAN, 1e3), (1e9, f64::INFINITY)];
        let points = odd.into_iter().map(|(x, y)| point("odd", x, y)).chain([point("good", 2.0, 1e12)]);
        let svg = plot(points.collect()).svg();
        assert_eq!(svg, plot(vec![point("good", 2.0, 1e12)]).svg(), "as if they were not there");
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("odd"), "{svg}");
        let empty =
            Roofline { slopes: Vec::new(), ceilings: Vec::new(), series: Vec::new(), ..plot(Vec::new()) };
        assert!(!empty.svg().contains("NaN") && !empty.svg().contains("inf"));
    }

    #[test]
    fn text_is_escaped_and_points_say_what_they_are() {
        let svg = plot(vec![point("<1>", 1.0, 1e12)]).svg();
        for part in [
            "&quot;l&quot;",
            "f32 &lt; all",
            "memory &amp; more",
            "rung &lt;1&gt;, measured",
            ">&lt;1&gt;</text>",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn labels_of_points_in_one_place_stand_apart() {
        let (at, mut taken) = ([200.0, 150.0], vec![Area::around(200.0, 150.0, 7.0, 7.0)]);
        let frame = Area { left: 150.0, right: 250.0, top: 0.0, bottom: 300.0 };
        let labels: Vec<String> = (0..12).map(|n| label(&format!("{n}"), at, &frame, &mut taken)).collect();
        assert_eq!(taken.len(), 13);
        for (n, area) in taken.iter().enumerate() {
            assert!(taken[..n].iter().all(|other| !other.meets(area)), "{n}: {area:?} in {taken:?}");
            assert!(area.is_inside(&frame), "{area:?}");
        }
        assert!(!labels[0].contains("leader") && labels[11].contains("leader"), "{labels:?}");
    }

    #[test]
    fn ticks_are_powers_of_ten_and_more_where_these_are_few() {
        let texts = |range, scale| ticks(range, scale).into_iter().map(|(_, t)| t).collect::<Vec<_>>();
        assert_eq!(texts((3e10, 2e14), 1e12), ["0.1", "1", "10", "100"]);
        assert_eq!(texts((0.3, 12.0), 1.0), ["0.5", "1", "2", "5", "10"]);
        assert_eq!(
            texts((0.9, 7.0), 1.0),
            ["1.0", "1.5", "2", "3", "4", "5", "6"].map(|t| t.trim_end_matches(".0"))
        );
        assert_eq!(texts((12e12, 45e12), 1e12), ["15", "20", "30", "40"]);
        assert_eq!(ticks((9e11, 2e14), 1e12)[0].0, 1e12);
    }
}

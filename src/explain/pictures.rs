//! One request of a warp as a picture: 32 lanes over the sectors of device memory or the banks of shared memory.

use std::collections::BTreeMap;

use warpwright_core::model::sites::{BANKS, Memory, Sample};

use crate::report::page::escaped;
use crate::report::svg;

/// Columns that are drawn, at most: 32 banks, or so many sectors.
const COLUMNS: usize = 32;

/// Which cells a request touches.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What is accessed.
    memory: Memory,
    /// For each lane the columns that it touches, each with the word or sector that it wants there.
    lanes: Vec<Vec<(usize, i64)>>,
    /// What columns are called: the numbers of banks, or of sectors from the first that is touched.
    columns: Vec<String>,
    /// Sectors that there is no room for.
    left_out: usize,
    /// Lanes that are served at a time.
    at_a_time: usize,
}

impl Picture {
    /// The picture of a request.
    pub fn of(memory: Memory, sample: &Sample) -> Picture {
        match memory {
            Memory::Shared => Picture {
                memory,
                lanes: sample
                    .words()
                    .iter()
                    .map(|words| words.iter().map(|w| (w.rem_euclid(BANKS) as usize, *w)).collect())
                    .collect(),
                columns: (0..BANKS).map(|b| b.to_string()).collect(),
                left_out: 0,
                at_a_time: sample.at_a_time.into(),
            },
            Memory::Device => {
                let lanes = sample.sectors();
                let mut all: Vec<i64> = lanes.iter().flatten().copied().collect();
                all.sort_unstable();
                all.dedup();
                let first = all.first().copied().unwrap_or(0);
                let left_out = all.len().saturating_sub(COLUMNS);
                all.truncate(COLUMNS);
                let place = |s: &i64| all.binary_search(s).ok().map(|at| (at, *s));
                Picture {
                    memory,
                    lanes: lanes.iter().map(|sectors| sectors.iter().filter_map(place).collect()).collect(),
                    columns: all.iter().map(|s| (s - first).to_string()).collect(),
                    left_out,
                    at_a_time: sample.at_a_time.into(),
                }
            }
        }
    }

    /// For each lane and column the number of the pass in which the bank gives the word, from 0 for each group of lanes that is served
    /// at a time; sectors have no order.
    fn passes(&self) -> Vec<Vec<(usize, usize)>> {
        let mut all = Vec::new();
        for group in self.lanes.chunks(self.at_a_time.max(1)) {
            let mut wanted: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
            let mut one = |(column, piece): &(usize, i64)| {
                let seen = wanted.entry(*column).or_default();
                let at = seen.iter().position(|p| p == piece).unwrap_or_else(|| {
                    seen.push(*piece);
                    seen.len() - 1
                });
                (*column, at)
            };
            all.extend(group.iter().map(|lane| lane.iter().map(&mut one).collect::<Vec<_>>()));
        }
        all
    }

    /// The picture in 16 lines of text: each character stands for two lanes, one above the other.
    pub fn text(&self) -> String {
        let touches = |lane: usize, column: usize| self.lanes[lane].iter().any(|(c, _)| *c == column);
        let mut lines = Vec::new();
        for pair in 0..self.lanes.len() / 2 {
            let cells: String = (0..self.columns.len())
                .map(|column| match (touches(2 * pair, column), touches(2 * pair + 1, column)) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => '·',
                })
                .collect();
            lines.push(format!("lanes {:>2}, {:>2}  {cells}", 2 * pair, 2 * pair + 1));
        }
        let below = match self.memory {
            Memory::Shared => "banks 0 to 31".to_string(),
            Memory::Device if self.left_out > 0 => {
                format!("the first {COLUMNS} of {} sectors", COLUMNS + self.left_out)
            }
            Memory::Device => format!("{} sectors, of 32 bytes each", self.columns.len()),
        };
        lines.push(format!("{:14}{below}", ""));
        lines.join("\n")
    }

    /// The picture as SVG. What a bank gives in its first pass is blue, what in later ones orange, the darker the later.
    pub fn svg(&self, label: &str) -> String {
        let (left, top, cell) = (26.0, 14.0, 10.4);
        let width = left + cell * COLUMNS as f64 + 2.0;
        let height = top + cell * self.lanes.len() as f64 + 16.0;
        let mut out = svg::open(width, height, label);
        for lane in (0..self.lanes.len()).step_by(4) {
            let y = top + cell * lane as f64;
            out += &format!(
                "<line class=\"grid\" x1=\"{left}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{lane}</text>\n",
                width - 2.0,
                left - 4.0,
                y + 8.5
            );
        }
        for (column, name) in self.columns.iter().enumerate().step_by(4) {
            let x = left + cell * column as f64;
            out += &format!(
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{:.1}\"/>\
                 <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                height - 16.0,
                x,
                top - 4.0,
                escaped(name)
            );
        }
        // What is served at a time is set apart.
        for lane in (self.at_a_time..self.lanes.len()).step_by(self.at_a_time.max(1)) {
            let y = top + cell * lane as f64;
            out += &format!(
                "<line class=\"roof\" x1=\"{left}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n",
                width - 2.0
            );
        }
        let last = self.passes().iter().flatten().map(|(_, pass)| *pass).max().unwrap_or(0).max(1);
        for (lane, (cells, wanted)) in self.passes().iter().zip(&self.lanes).enumerate() {
            for ((column, pass), (_, piece)) in cells.iter().zip(wanted) {
                let (class, strength) =
                    if *pass == 0 { ("s0", 1.0) } else { ("s1", 0.45 + 0.55 * *pass as f64 / last as f64) };
                let what = match self.memory {
                    Memory::Shared => format!("lane {lane}: bank {column}, word {piece}, pass {}", pass + 1),
                    Memory::Device => format!("lane {lane}: sector {}", self.columns[*column]),
                };
                out += &format!(
                    "<rect class=\"{class} mark\" x=\"{:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"{w:.1}\" \
                     fill-opacity=\"{strength:.2}\"><title>{what}</title></rect>\n",
                    left + cell * *column as f64 + 0.7,
                    top + cell * lane as f64 + 0.7,
                    w = cell - 1.4,
                );
            }
        }
        let below = match self.memory {
            Memory::Shared => {
                format!("lanes, {} at a time, over 32 banks of shared memory", self.at_a_time)
            }
            Memory::Device if self.left_out > 0 => {
                format!(
                    "lanes of a warp, down, over the first {COLUMNS} of {} sectors",
                    COLUMNS + self.left_out
                )
            }
            Memory::Device => "lanes over sectors of device memory".to_string(),
        };
        out + &format!("<text class=\"name\" x=\"{left}\" y=\"{:.1}\">{below}</text>\n</svg>\n", height - 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Picture;
    use warpwright_core::model::sites::{Memory, Sample};

    fn sample(place: impl Fn(i64) -> i64) -> Sample {
        Sample {
            bytes: 4,
            lanes: std::array::from_fn(|l| Some(place(l as i64))),
            at_a_time: 32,
            passes: 1,
            least: 1,
        }
    }

    #[test]
    fn lanes_that_want_different_words_of_a_bank_get_them_one_after_the_other() {
        let column = Picture::of(Memory::Shared, &sample(|l| 128 * l));
        assert!(column.passes().iter().enumerate().all(|(lane, cells)| *cells == [(0, lane)]));
        let row = Picture::of(Memory::Shared, &sample(|l| 4 * l));
        assert!(row.passes().iter().enumerate().all(|(lane, cells)| *cells == [(lane, 0)]));
        let one = Picture::of(Memory::Shared, &sample(|_| 64));
        assert!(one.passes().iter().all(|cells| *cells == [(16, 0)]), "a word is given to all at once");
        assert!(row.text().lines().next().unwrap().contains("▀▄·"), "{}", row.text());
        assert_eq!(column.svg("l").matches("s1 mark").count(), 31);
        let halves = Picture::of(Memory::Shared, &Sample { at_a_time: 16, ..sample(|l| 128 * l) });
        assert_eq!(halves.svg("l").matches("s1 mark").count(), 30, "each half begins anew");
    }

    #[test]
    fn sectors_are_numbered_from_the_first_and_those_beyond_the_edge_are_counted() {
        let apart = Picture::of(Memory::Device, &sample(|l| 4096 + 64 * l));
        assert_eq!((apart.columns[0].as_str(), apart.columns[1].as_str()), ("0", "2"));
        assert!(apart.text().ends_with("32 sectors, of 32 bytes each"));
        let wide = Picture::of(Memory::Device, &Sample { bytes: 16, ..sample(|l| 4096 * l + 24) });
        assert_eq!(wide.left_out, 32);
        assert!(wide.svg("l").contains("first 32 of 64"));
    }
}

//! Schedules are checked: every prefix is equal to the specification, in order and on threads.

mod check;
mod epilogues;
mod hopper;
mod hostile;
mod lowering;
mod pipelines;
mod random;
mod reductions;
mod rungs;
mod skinny_banks;
mod skinny_border;
mod skinny_bulk;
mod skinny_classes;
mod skinny_data;
mod skinny_numbers;
mod skinny_omit;
mod skinny_passing;
mod skinny_reads;
mod skinny_rest;
mod skinny_short;
mod skinny_starts;
mod skinny_turns;
mod synchronised;
mod tall_skinny;
mod tiled;
mod wide;

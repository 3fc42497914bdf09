//! Warpwright.

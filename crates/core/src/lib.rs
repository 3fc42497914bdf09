//! The pure heart of Warpwright.

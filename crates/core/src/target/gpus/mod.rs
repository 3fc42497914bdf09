//! One file per GPU. To add one: write its file, name it below, and put it in the list.

mod a100_40gb;
mod a100_80gb;
mod a6000;
mod b200;
mod gtx980;
mod h100_pcie;
mod h100_sxm;
mod h200;
mod l4;
mod l40;
mod rtx2080ti;
mod rtx3090;
mod rtx4090;
mod rtx5090;
mod v100_pcie;
mod v100_sxm2;

use super::Target;

/// Every GPU in the tables, oldest first.
pub const ALL: &[&Target] = &[
    &gtx980::GPU,
    &v100_pcie::GPU,
    &v100_sxm2::GPU,
    &rtx2080ti::GPU,
    &a100_40gb::GPU,
    &a100_80gb::GPU,
    &rtx3090::GPU,
    &a6000::GPU,
    &rtx4090::GPU,
    &l4::GPU,
    &l40::GPU,
    &h100_pcie::GPU,
    &h100_sxm::GPU,
    &h200::GPU,
    &b200::GPU,
    &rtx5090::GPU,
];

/// The GPU that is simulated when nobody names one.
pub const DEFAULT: &Target = &h200::GPU;

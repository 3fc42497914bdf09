//! Driver, NVRTC and cuBLAS, loaded at run time.

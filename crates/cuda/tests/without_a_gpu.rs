//! On a machine without NVIDIA's driver everything that needs one is a typed error with advice, never a panic.

use warpwright_cuda::tensor_map::{TensorMapSpec, TensorType};
use warpwright_cuda::{Device, DevicePointer, Error, Library, TensorMap, device, locate};

/// True, with a line, on machines where these tests have nothing to say.
fn has_driver() -> bool {
    let found = locate::find(Library::Driver).path.is_some();
    if found {
        eprintln!("skipped: this machine has a driver");
    }
    found
}

#[test]
fn the_list_of_devices_is_empty_with_a_reason() {
    if has_driver() {
        return;
    }
    let list = device::list();
    assert!(list.devices.is_empty());
    let reason = list.reason.unwrap();
    assert!(matches!(reason, Error::LibraryMissing { library: Library::Driver, .. }));
    assert!(reason.to_string().contains("--device sim"), "{reason}");
}

#[test]
fn opening_a_device_or_encoding_a_map_is_an_error() {
    if has_driver() {
        return;
    }
    assert!(matches!(Device::open(0), Err(Error::LibraryMissing { library: Library::Driver, .. })));
    let spec = TensorMapSpec::matrix(TensorType::F32, DevicePointer(256), [64, 64], 256, [32, 32]);
    assert!(matches!(TensorMap::encode(&spec), Err(Error::LibraryMissing { library: Library::Driver, .. })));
}

#[test]
fn the_survey_says_of_every_library_where_it_is_or_what_gets_it() {
    let findings = locate::survey();
    assert_eq!(findings.len(), Library::ALL.len());
    for finding in findings {
        assert!(finding.path.is_some() != finding.advice.is_some(), "{finding:?}");
    }
}

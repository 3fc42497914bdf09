//! Wisdom in the T4 format of other tuners.
//!
//! The schema (github.com/KernelTuner/kernel_tuner, schema/T4/1.0.0) and Kernel Tuner's own writer spell the times of a
//! result differently; both spellings are given. Times are in milliseconds, as the metadata say.

use serde_json::{Map, Value, json};

use super::record::{Record, Status};

/// The records as T4 results. Their GPU, family and problem stand in the metadata of each result.
pub fn export(records: &[Record]) -> Value {
    let results: Vec<Value> = records.iter().map(result).collect();
    json!({
        "schema_version": "1.0.0",
        "metadata": {
            "timeunit": "milliseconds",
            "tuner": format!("warpwright {}", env!("CARGO_PKG_VERSION")),
        },
        "results": results,
    })
}

fn result(record: &Record) -> Value {
    let trial = &record.trial;
    let milliseconds = |seconds: f64| seconds * 1e3;
    let time = trial.seconds.map(milliseconds);
    let runtimes: Vec<f64> = match (trial.quartiles, time) {
        (Some((low, high)), Some(median)) => vec![milliseconds(low), median, milliseconds(high)],
        (None, Some(median)) => vec![median],
        (_, None) => Vec::new(),
    };
    let times = trial.times;
    let framework = (times.all - times.compile - times.verify - times.measure).max(0.0);
    let mut measurements: Vec<Value> = Vec::new();
    measurements.extend(time.map(|t| json!({"name": "time", "value": t, "unit": "ms"})));
    measurements
        .extend(trial.fraction.map(|f| json!({"name": "fraction_of_roofline", "value": f, "unit": ""})));
    measurements.extend(trial.registers.map(|r| json!({"name": "registers", "value": r, "unit": ""})));
    let configuration: Map<String, Value> =
        trial.choice.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    json!({
        "timestamp": record.date,
        "configuration": configuration,
        "times": {
            // As the schema names it, and as Kernel Tuner writes it.
            "compilation_time": milliseconds(times.compile),
            "compilation": milliseconds(times.compile),
            "benchmark": milliseconds(times.measure),
            "framework": milliseconds(framework),
            "search_algorithm": 0.0,
            "validation": milliseconds(times.verify),
            "runtimes": runtimes,
        },
        "invalidity": trial.status,
        "correctness": u8::from(trial.status == Status::Correct),
        "measurements": measurements,
        "objectives": ["time"],
        "metadata": {"gpu": record.gpu, "family": record.family, "problem": record.problem},
    })
}

#[cfg(test)]
mod tests {
    use super::super::record::{Record, Status, Trial};
    use super::super::tests::record;
    use super::export;

    #[test]
    fn results_have_what_the_schema_requires_in_both_spellings() {
        let wrong = Trial { status: Status::Correctness, seconds: None, ..record(20, 5, 1.0).trial };
        let records = [record(20, 4, 2e-3), Record { trial: wrong, ..record(20, 5, 1.0) }];
        let exported = export(&records);
        let results = exported["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        for result in results {
            for required in ["configuration", "times", "invalidity", "correctness"] {
                assert!(!result[required].is_null(), "{required}: {result}");
            }
            for spelling in ["compilation_time", "compilation", "validation", "framework"] {
                assert!(result["times"][spelling].is_number(), "{spelling}: {result}");
            }
            assert_eq!(result["objectives"][0], "time");
        }
        assert_eq!(
            (results[0]["configuration"]["tm"].as_i64(), results[0]["correctness"].as_i64()),
            (Some(4), Some(1))
        );
        assert_eq!(results[0]["measurements"][0]["value"], 2.0);
        assert_eq!(results[0]["times"]["runtimes"][0], 2.0);
        assert_eq!(
            (results[1]["invalidity"].as_str(), results[1]["correctness"].as_i64()),
            (Some("correctness"), Some(0))
        );
        assert_eq!(exported["metadata"]["timeunit"], "milliseconds");
    }
}

//! What a leader holds at once of what others wrote.

use super::*;
use crate::leader::batch::{self, Planned, TOGETHER};
use crate::rules::component::Write;
use crate::rules::kubernetes::Object;

/// How many objects of this one's kind are read for one batch.
fn read_together(status: &Value) -> usize {
    let bench = Bench::new();
    let tenure = bench.permit.tenure(bench.clock.monotonic()).unwrap();
    let mut read = 0;
    let plan = |read: &mut usize, key| {
        *read += 1;
        let write = Write::Replace(Object(json!({ "metadata": {}, "status": status })));
        Some(Planned { key, write, before: None })
    };
    batch::run(&bench.leader.world, &tenure, &mut read, 0..TOGETHER, plan, |_, _| ()).unwrap();
    read
}

#[test]
fn no_more_is_read_for_a_batch_that_holds_8_mib_be_it_in_values_or_in_texts() {
    assert_eq!(read_together(&json!("short")), TOGETHER);
    assert_eq!(read_together(&json!("x".repeat(1024 * 1024))), 8, "a text of a mebibyte");
    assert_eq!(read_together(&json!(vec![0; 32 * 1024])), 8, "values of a mebibyte");
}

//! Decisions. No I/O, no clock, no thread, no log: values in, values out.

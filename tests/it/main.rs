//! Scenarios on a real kube-apiserver and the real manager.

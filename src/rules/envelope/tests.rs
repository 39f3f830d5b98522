//! Key rings, signatures, and whom a refusal is answered to. The vectors of whole envelopes are run
//! by `verdict`.

use super::*;
use crate::rules::vectors;
use serde_json::json;

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn every_signature_of_the_vectors_is_judged_strictly() {
    let cases = vectors::load("ed25519.json");
    for case in cases["cases"].as_array().unwrap() {
        let got = keys::verifies(&hex(&case["key"]), &hex(&case["msg"]), &hex(&case["sig"]));
        assert_eq!(got, case["valid"].as_bool().unwrap(), "{}", case["name"]);
    }
}

#[test]
fn a_key_ring_takes_ed25519_public_keys_and_nothing_else() {
    let pem = vectors::load("envelopes.json")["manager_pem"].as_str().unwrap().to_owned();
    let ring = KeyRing::from_pem(&pem).unwrap();
    assert_eq!(ring.ids().count(), 2);
    let windows = format!("# the old key\r\n\r\n{}\r\nthe end", pem.replace('\n', "\r\n"));
    assert_eq!(KeyRing::from_pem(&windows), Ok(ring.clone()));
    assert_eq!(KeyRing::from_pem(&format!("{pem}{pem}")), Ok(ring));

    assert_eq!(KeyRing::from_pem(""), Err(KeyRingError::Empty));
    assert_eq!(KeyRing::from_pem("# nothing"), Err(KeyRingError::Empty));
    let private = format!("{pem}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    assert_eq!(KeyRing::from_pem(&private), Err(KeyRingError::Label("PRIVATE KEY".into())));
    for (from, to) in [
        ("-----END PUBLIC KEY-----\n", ""),
        ("-----END PUBLIC KEY-----", "-----END PRIVATE KEY-----"),
        ("-----BEGIN PUBLIC KEY-----\n", ""),
        ("SswQ=", "Ss*Q="),
        ("SswQ=", "SswQ"),
    ] {
        assert_eq!(KeyRing::from_pem(&pem.replacen(from, to, 1)), Err(KeyRingError::Malformed), "{from}");
    }
}

#[test]
fn a_key_that_is_not_ed25519_or_weak_is_refused() {
    let block = |der: &[u8]| {
        let body = STANDARD.encode(der);
        KeyRing::from_pem(&format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n"))
    };
    let spki = |key: &[u8]| [&keys::SPKI_PREFIX, key].concat();
    let mut neutral = [0; 32];
    neutral[0] = 1;
    assert_eq!(block(&spki(&neutral)), Err(KeyRingError::WeakKey));
    assert_eq!(block(&spki(&[0xff; 32])), Err(KeyRingError::WeakKey));
    assert_eq!(block(&spki(&[0x58; 31])), Err(KeyRingError::NotEd25519));
    let mut x25519 = spki(&[0x58; 32]);
    x25519[8] = 0x6e;
    assert_eq!(block(&x25519), Err(KeyRingError::NotEd25519));
}

#[test]
fn a_refusal_names_the_command_where_its_ids_can_be_read() {
    let cases = vectors::load("envelopes.json");
    let ring = KeyRing::from_pem(cases["manager_pem"].as_str().unwrap()).unwrap();
    for (name, readable) in [
        ("unknown key", true),
        ("spec changed", true),
        ("unknown member of the envelope", true),
        ("payload without target", true),
        ("payload without nonce", false),
        ("nonce short", false),
        ("nested too deep", false),
        ("cut short", false),
    ] {
        let all = cases["cases"].as_array().unwrap();
        let case = all.iter().find(|case| case["name"] == name).unwrap();
        let refusal = open_command(&vectors::base64(&case["wire_b64"]), &ring, 604_800).unwrap_err();
        assert_eq!(refusal.ids.is_some(), readable, "{name}");
    }
}

#[test]
fn the_forms_of_key_and_signature_are_checked_before_the_key_is_looked_up() {
    let cases = vectors::load("envelopes.json");
    let ring = KeyRing::from_pem(cases["manager_pem"].as_str().unwrap()).unwrap();
    let good: Value = serde_json::from_slice(&vectors::base64(&cases["cases"][0]["wire_b64"])).unwrap();
    let signature = good["signature"].as_str().unwrap().to_owned();
    let key = good["key_id"].as_str().unwrap().to_owned();
    for (member, text) in [
        ("key_id", key.to_uppercase()),
        ("key_id", key[..62].to_owned()),
        ("key_id", String::new()),
        ("signature", signature.trim_end_matches('=').to_owned()),
        ("signature", signature.replace("==", "=")),
        ("signature", signature.replace("AQ==", "AR==")),
        ("signature", signature.replace('/', "_").replace('+', "-")),
        ("signature", format!("{signature}\n")),
        ("signature", STANDARD.encode([0; 63])),
        ("signature", STANDARD.encode([0; 65])),
    ] {
        let mut bad = good.clone();
        bad[member] = text.into();
        let refusal = open_command(bad.to_string().as_bytes(), &ring, 604_800).unwrap_err();
        assert_eq!(refusal.reason, Reason::InvalidEnvelope, "{bad}");
    }
    for payload in [json!(null), json!([]), json!("x")] {
        let mut bad = good.clone();
        bad["payload"] = payload;
        let refusal = open_command(bad.to_string().as_bytes(), &ring, 604_800).unwrap_err();
        assert_eq!(refusal.reason, Reason::InvalidEnvelope);
    }
}

#[test]
fn what_was_opened_can_be_stored_and_opened_again() {
    let cases = vectors::load("envelopes.json");
    let ring = KeyRing::from_pem(cases["manager_pem"].as_str().unwrap()).unwrap();
    let opened = open_command(&vectors::base64(&cases["cases"][0]["wire_b64"]), &ring, 604_800).unwrap();
    let again = reopen_command(opened.envelope(), &ring).unwrap();
    assert!(again == opened);
    let changed = opened.envelope().text().replace(r#""replicas":2"#, r#""replicas":3"#);
    assert_eq!(
        reopen_command(&Raw::new(changed).unwrap(), &ring).unwrap_err().reason,
        Reason::InvalidSignature
    );
}

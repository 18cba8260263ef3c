//! A certificate for `localhost`, the same in every run. The lengths of a handshake's packets are part of the schedule.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A self-signed certificate and its key.
pub struct Certificate {
    chain: &'static [u8],
    key: &'static [u8],
}

/// With an Ed25519 key: signatures are always 64 bytes long.
pub const ED25519: Certificate = Certificate {
    chain: include_bytes!("../certificates/ed25519.crt"),
    key: include_bytes!("../certificates/ed25519.key"),
};

/// With an ECDSA key: signatures are 70 to 72 bytes long, as their random numbers come.
pub const ECDSA: Certificate = Certificate {
    chain: include_bytes!("../certificates/ecdsa.crt"),
    key: include_bytes!("../certificates/ecdsa.key"),
};

impl Certificate {
    pub fn chain(&self) -> CertificateDer<'static> {
        CertificateDer::from(self.chain)
    }

    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key))
    }

    pub fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.chain()).expect("the certificate is good");
        Arc::new(roots)
    }
}

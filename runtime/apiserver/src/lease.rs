//! The node's lease: that it lives, without a word more (NODE-01).

use jiff::Timestamp;
use serde_json::json;

use crate::incoming::now;
use crate::objects::Objects;
use crate::resources::{LEASES, NODES};
use crate::storage::StorageError;

/// As upstream: who has not been heard of for so long is not there.
const SECONDS: i64 = 40;

impl Objects {
    /// Says that the node lives now.
    pub async fn renew_lease(&self, node: &str) -> Result<(), StorageError> {
        let key = LEASES.key("kube-node-lease", node);
        let time = format!("{:.6}", Timestamp::now());
        let renewed = self.update(&key, |lease| {
            lease["spec"]["renewTime"] = time.as_str().into();
            true
        });
        if renewed.await?.is_some() {
            return Ok(());
        }
        let object = self.get(&NODES.key("", node)).await?;
        let uid = object.map(|object| object["metadata"]["uid"].clone()).unwrap_or_default();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": node,
                "namespace": "kube-node-lease",
                "uid": uuid::Uuid::new_v4().to_string(),
                "creationTimestamp": now().to_string(),
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}],
            },
            "spec": {"holderIdentity": node, "leaseDurationSeconds": SECONDS, "renewTime": time},
        });
        match self.create(&key, lease).await {
            Ok(_) | Err(StorageError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

//! Volumes, their sources and mounts.

use husk_api::{Gate, Gates};
use serde_json::{Value, json};

use super::{check, container, spec};

fn volume(source: Value) -> Value {
    let mut volume = source;
    volume["name"] = "v".into();
    spec(json!({"volumes": [volume]}))
}

#[test]
fn sources() {
    let long = "a".repeat(64);
    let iqn = "iqn.2001-04.com.example:storage.disk1";
    check(
        &[
            (
                "validateVolumeSource",
                volume(json!({"emptyDir": {}, "downwardAPI": {"items": []}, "cephfs": {"monitors": []}})),
                &[
                    "Forbidden spec.volumes[0].cephFS: may not specify more than 1 volume type",
                    "Forbidden spec.volumes[0].downwarAPI: may not specify more than 1 volume type",
                ],
            ),
            (
                "validateGCEPersistentDiskVolumeSource",
                volume(json!({"gcePersistentDisk": {"pdName": "", "partition": 256}})),
                &[
                    "Invalid spec.volumes[0].persistentDisk.partition: must be between 1 and 255, inclusive",
                    "Required spec.volumes[0].persistentDisk.pdName: ",
                ],
            ),
            (
                "validateISCSIVolumeSource",
                volume(json!({"iscsi": {"targetPortal": "10.0.0.1", "iqn": iqn, "lun": 0}})),
                &[],
            ),
            (
                "validateISCSIVolumeSource",
                volume(
                    json!({"iscsi": {"targetPortal": "10.0.0.1", "iqn": "eui.1234", "lun": 256, "initiatorName": "x"}}),
                ),
                &[
                    "Invalid spec.volumes[0].iscsi.initiatorname: must be valid format starting with iqn, eui, or naa",
                    "Invalid spec.volumes[0].iscsi.iqn: must be valid format",
                    "Invalid spec.volumes[0].iscsi.lun: must be between 0 and 255, inclusive",
                ],
            ),
            (
                "validateVolumeSource",
                volume(json!({"iscsi": {"targetPortal": long, "iqn": iqn, "lun": 0, "initiatorName": iqn}})),
                &["Invalid spec.volumes[0].name: Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
                   characters if iscsi.initiatorName is specified."],
            ),
            (
                "validateQuobyteVolumeSource",
                volume(json!({"quobyte": {"registry": "r:1,r", "volume": "v"}})),
                &["Invalid spec.volumes[0].quobyte.registry: must be a host:port pair"],
            ),
            (
                "validateFlexVolumeSource",
                volume(json!({"flexVolume": {"driver": "d", "options": {"A.Kubernetes.io/x": "", "k8s.iox": ""}}})),
                &["Invalid spec.volumes[0].flexVolume.options[A.Kubernetes.io/x]: kubernetes.io and k8s.io namespaces"],
            ),
            (
                "validateAzureDisk",
                volume(json!({"azureDisk": {"diskName": "d", "diskURI": "x", "kind": "Managed"}})),
                &["NotSupported spec.volumes[0].azureDisk.diskURI: supported values: \"/subscriptions/"],
            ),
            (
                "ValidateCSIDriverName, validateCSIVolumeSource",
                volume(json!({"csi": {"driver": format!("{long}_"), "nodePublishSecretRef": {"name": "A"}}})),
                &[
                    "Invalid spec.volumes[0].csi.driver: a lowercase RFC 1123 subdomain",
                    "Invalid spec.volumes[0].csi.name: a lowercase RFC 1123 subdomain",
                    "TooLong spec.volumes[0].csi.driver: may not be more than 63 bytes",
                ],
            ),
            (
                "ValidateTemplateObjectMeta, ValidatePersistentVolumeClaimSpec",
                volume(json!({"ephemeral": {"volumeClaimTemplate": {
                    "metadata": {"name": "x", "labels": {"a": "b c"}},
                    "spec": {
                        "accessModes": ["ReadWriteOncePod", "ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                        "storageClassName": "A",
                        "dataSource": {"kind": "X", "name": "n"},
                    },
                }}})),
                &[
                    "Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: cannot be set",
                    "Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: may not use",
                    "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.labels: a valid label must be",
                    "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource: must be 'Persist",
                    "Invalid spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName: a lowercase",
                ],
            ),
        ],
        &Gates::UPSTREAM,
    );
}

#[test]
fn projections() {
    let sources = |sources: Value| volume(json!({"projected": {"sources": sources}}));
    let account = |sources: Value| {
        spec(json!({"serviceAccountName": "a", "volumes": [{"name": "v", "projected": {"sources": sources}}]}))
    };
    let gates = Gates::UPSTREAM.with(Gate::ClusterTrustBundleProjection, true).with(Gate::PodCertificateRequest, true);
    check(
        &[
            (
                "validateProjectionSources",
                sources(json!([{"secret": {"name": "s"}, "configMap": {"name": "m"}}])),
                &["Forbidden spec.volumes[0].projected.sources[0]: may not specify more than 1 volume type per source"],
            ),
            (
                "validateProjectionSources: a token's path is looked at beside the sources, and compared with nothing",
                account(json!([
                    {"serviceAccountToken": {"path": "/t"}},
                    {"serviceAccountToken": {"path": ""}},
                    {"serviceAccountToken": {"path": "t"}},
                    {"serviceAccountToken": {"path": "t"}},
                ])),
                &[
                    "Invalid spec.volumes[0].projected.path: must be a relative path",
                    "Required spec.volumes[0].projected.path: ",
                ],
            ),
            (
                "validateProjectionSources",
                sources(json!([
                    {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                    {"configMap": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                ])),
                &["Invalid spec.volumes[0].projected: conflicting duplicate paths"],
            ),
            (
                "ValidateClusterTrustBundleName, ValidateSignerName",
                sources(json!([
                    {"clusterTrustBundle": {"name": "a:b:C", "path": "p"}},
                    {"clusterTrustBundle": {"signerName": "nodot/X", "path": "q"}},
                    {"clusterTrustBundle": {"path": "r"}},
                ])),
                &[
                    "Invalid spec.volumes[0].projected.sources[0].clusterTrustBundle.name: not a valid clustertrustbundle",
                    "Invalid spec.volumes[0].projected.sources[1].clusterTrustBundle.signerName: should be a domain",
                    "Invalid spec.volumes[0].projected.sources[1].clusterTrustBundle.signerName: validating label \"X\": a",
                    "Required spec.volumes[0].projected.sources[2].clusterTrustBundle: either name or signerName",
                ],
            ),
            (
                "validateProjectionSources",
                sources(json!([{"podCertificate": {
                    "keyType": "X", "signerName": "kubernetes.io/s", "maxExpirationSeconds": 86401,
                }}])),
                &[
                    "Invalid spec.volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds: if provided, \
                     maxExpirationSeconds must be <= 86400",
                    "NotSupported spec.volumes[0].projected.sources[0].podCertificate.keyType: supported values: \"RSA3072\"",
                    "Required spec.volumes[0].projected.sources[0].podCertificate: specify at least one of",
                ],
            ),
        ],
        &gates,
    );
    let dropped =
        sources(json!([{"clusterTrustBundle": {"path": ""}}, {"podCertificate": {"keyType": "", "signerName": ""}}]));
    check(&[("DropDisabledPodFields", dropped, &[])], &Gates::UPSTREAM);
}

#[test]
fn mounts_and_devices() {
    let devices = json!([{"name": "v", "devicePath": "/a"}, {"name": "v", "devicePath": "/b"}]);
    let mut hidden = container(json!({"volumeMounts": [{"name": "w", "mountPath": "/a"}], "volumeDevices": devices}));
    hidden["spec"]["volumes"] =
        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "w", "emptyDir": {}}]);
    let mut users = container(json!({"volumeDevices": [{"name": "v", "devicePath": "/a"}]}));
    users["spec"]["volumes"] = hidden["spec"]["volumes"].clone();
    users["spec"]["hostUsers"] = false.into();
    check(
        &[
            (
                "GetVolumeDeviceMap: the last of a name hides the others",
                hidden,
                &[
                    "Invalid spec.containers[0].volumeDevices[0].devicePath: must not already exist as a path in volumeMounts",
                    "Invalid spec.containers[0].volumeDevices[1].name: must be unique",
                ],
            ),
            ("validateHostUsers", users, &["Forbidden spec.containers[0].volumeDevices: when `hostUsers` is false"]),
        ],
        &Gates::UPSTREAM,
    );
}

//! Volumes.

use super::Support::Rejected;
use super::Type::*;
use super::container::{OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR};
use super::meta::{
    LABEL_SELECTOR, LOCAL_OBJECT_REFERENCE, OBJECT_META, TYPED_LOCAL_OBJECT_REFERENCE, TYPED_OBJECT_REFERENCE,
};
use super::{Object, field, object};

pub(super) static VOLUME: Object = object(
    "Volume",
    &[
        field("awsElasticBlockStore", Object(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("azureDisk", Object(&AZURE_DISK_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("azureFile", Object(&AZURE_FILE_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("cephfs", Object(&CEPH_FS_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("cinder", Object(&CINDER_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("configMap", Object(&CONFIG_MAP_VOLUME_SOURCE)),
        field("csi", Object(&CSI_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("downwardAPI", Object(&DOWNWARD_API_VOLUME_SOURCE)),
        field("emptyDir", Object(&EMPTY_DIR_VOLUME_SOURCE)),
        field("ephemeral", Object(&EPHEMERAL_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("fc", Object(&FC_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("flexVolume", Object(&FLEX_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("flocker", Object(&FLOCKER_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("gcePersistentDisk", Object(&GCE_PERSISTENT_DISK_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("gitRepo", Object(&GIT_REPO_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("glusterfs", Object(&GLUSTERFS_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("hostPath", Object(&HOST_PATH_VOLUME_SOURCE)),
        field("image", Object(&IMAGE_VOLUME_SOURCE)),
        field("iscsi", Object(&ISCSI_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("name", Str),
        field("nfs", Object(&NFS_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("persistentVolumeClaim", Object(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("photonPersistentDisk", Object(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("portworxVolume", Object(&PORTWORX_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("projected", Object(&PROJECTED_VOLUME_SOURCE)),
        field("quobyte", Object(&QUOBYTE_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("rbd", Object(&RBD_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("scaleIO", Object(&SCALE_IO_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("secret", Object(&SECRET_VOLUME_SOURCE)),
        field("storageos", Object(&STORAGE_OS_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
        field("vsphereVolume", Object(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE))
            .rejected("this kind of volume does not exist on a Husk node; use emptyDir or hostPath"),
    ],
);
pub(super) static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Object = object(
    "AWSElasticBlockStoreVolumeSource",
    &[field("fsType", Str), field("partition", Int32), field("readOnly", Bool), field("volumeID", Str)],
);
pub(super) static AZURE_DISK_VOLUME_SOURCE: Object = object(
    "AzureDiskVolumeSource",
    &[
        field("cachingMode", Str),
        field("diskName", Str),
        field("diskURI", Str),
        field("fsType", Str),
        field("kind", Str),
        field("readOnly", Bool),
    ],
);
pub(super) static AZURE_FILE_VOLUME_SOURCE: Object =
    object("AzureFileVolumeSource", &[field("readOnly", Bool), field("secretName", Str), field("shareName", Str)]);
pub(super) static CEPH_FS_VOLUME_SOURCE: Object = object(
    "CephFSVolumeSource",
    &[
        field("monitors", List(&Str)),
        field("path", Str),
        field("readOnly", Bool),
        field("secretFile", Str),
        field("secretRef", Object(&LOCAL_OBJECT_REFERENCE)),
        field("user", Str),
    ],
);
pub(super) static CINDER_VOLUME_SOURCE: Object = object(
    "CinderVolumeSource",
    &[
        field("fsType", Str),
        field("readOnly", Bool),
        field("secretRef", Object(&LOCAL_OBJECT_REFERENCE)),
        field("volumeID", Str),
    ],
);
pub(super) static CONFIG_MAP_VOLUME_SOURCE: Object = object(
    "ConfigMapVolumeSource",
    &[
        field("defaultMode", Int32),
        field("defaultUser", Int64),
        field("items", List(&Object(&KEY_TO_PATH))),
        field("name", Str),
        field("optional", Bool),
    ],
);
pub(super) static KEY_TO_PATH: Object =
    object("KeyToPath", &[field("key", Str), field("mode", Int32), field("path", Str), field("user", Int64)]);
pub(super) static CSI_VOLUME_SOURCE: Object = object(
    "CSIVolumeSource",
    &[
        field("driver", Str),
        field("fsType", Str),
        field("nodePublishSecretRef", Object(&LOCAL_OBJECT_REFERENCE)),
        field("readOnly", Bool),
        field("volumeAttributes", Map(&Str)),
    ],
);
pub(super) static DOWNWARD_API_VOLUME_SOURCE: Object = object(
    "DownwardAPIVolumeSource",
    &[
        field("defaultMode", Int32),
        field("defaultUser", Int64),
        field("items", List(&Object(&DOWNWARD_API_VOLUME_FILE))),
    ],
);
pub(super) static DOWNWARD_API_VOLUME_FILE: Object = object(
    "DownwardAPIVolumeFile",
    &[
        field("fieldRef", Object(&OBJECT_FIELD_SELECTOR)),
        field("mode", Int32),
        field("path", Str),
        field("resourceFieldRef", Object(&RESOURCE_FIELD_SELECTOR)),
        field("user", Int64),
    ],
);
pub(super) static EMPTY_DIR_VOLUME_SOURCE: Object =
    object("EmptyDirVolumeSource", &[field("medium", Str), field("mode", Int32), field("sizeLimit", Quantity)]);
pub(super) static EPHEMERAL_VOLUME_SOURCE: Object =
    object("EphemeralVolumeSource", &[field("volumeClaimTemplate", Object(&PERSISTENT_VOLUME_CLAIM_TEMPLATE))]);
pub(super) static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Object = object(
    "PersistentVolumeClaimTemplate",
    &[field("metadata", Object(&OBJECT_META)), field("spec", Object(&PERSISTENT_VOLUME_CLAIM_SPEC))],
);
pub(super) static PERSISTENT_VOLUME_CLAIM_SPEC: Object = object(
    "PersistentVolumeClaimSpec",
    &[
        field("accessModes", List(&Str)),
        field("dataSource", Object(&TYPED_LOCAL_OBJECT_REFERENCE)),
        field("dataSourceRef", Object(&TYPED_OBJECT_REFERENCE)),
        field("resources", Object(&VOLUME_RESOURCE_REQUIREMENTS)),
        field("selector", Object(&LABEL_SELECTOR)),
        field("storageClassName", Str),
        field("volumeAttributesClassName", Str),
        field("volumeMode", Str),
        field("volumeName", Str),
    ],
);
pub(super) static VOLUME_RESOURCE_REQUIREMENTS: Object =
    object("VolumeResourceRequirements", &[field("limits", Map(&Quantity)), field("requests", Map(&Quantity))]);
pub(super) static FC_VOLUME_SOURCE: Object = object(
    "FCVolumeSource",
    &[
        field("fsType", Str),
        field("lun", Int32),
        field("readOnly", Bool),
        field("targetWWNs", List(&Str)),
        field("wwids", List(&Str)),
    ],
);
pub(super) static FLEX_VOLUME_SOURCE: Object = object(
    "FlexVolumeSource",
    &[
        field("driver", Str),
        field("fsType", Str),
        field("options", Map(&Str)),
        field("readOnly", Bool),
        field("secretRef", Object(&LOCAL_OBJECT_REFERENCE)),
    ],
);
pub(super) static FLOCKER_VOLUME_SOURCE: Object =
    object("FlockerVolumeSource", &[field("datasetName", Str), field("datasetUUID", Str)]);
pub(super) static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Object = object(
    "GCEPersistentDiskVolumeSource",
    &[field("fsType", Str), field("partition", Int32), field("pdName", Str), field("readOnly", Bool)],
);
pub(super) static GIT_REPO_VOLUME_SOURCE: Object =
    object("GitRepoVolumeSource", &[field("directory", Str), field("repository", Str), field("revision", Str)]);
pub(super) static GLUSTERFS_VOLUME_SOURCE: Object =
    object("GlusterfsVolumeSource", &[field("endpoints", Str), field("path", Str), field("readOnly", Bool)]);
pub(super) static HOST_PATH_VOLUME_SOURCE: Object = object(
    "HostPathVolumeSource",
    &[
        field("path", Str),
        field("type", Str).only(
            &["", "Directory", "DirectoryOrCreate", "File", "FileOrCreate"],
            Rejected("a module mounts folders and files only; use Directory, File, or one of them with OrCreate"),
        ),
    ],
);
pub(super) static IMAGE_VOLUME_SOURCE: Object =
    object("ImageVolumeSource", &[field("pullPolicy", Str), field("reference", Str)]);
pub(super) static ISCSI_VOLUME_SOURCE: Object = object(
    "ISCSIVolumeSource",
    &[
        field("chapAuthDiscovery", Bool),
        field("chapAuthSession", Bool),
        field("fsType", Str),
        field("initiatorName", Str),
        field("iqn", Str),
        field("iscsiInterface", Str),
        field("lun", Int32),
        field("portals", List(&Str)),
        field("readOnly", Bool),
        field("secretRef", Object(&LOCAL_OBJECT_REFERENCE)),
        field("targetPortal", Str),
    ],
);
pub(super) static NFS_VOLUME_SOURCE: Object =
    object("NFSVolumeSource", &[field("path", Str), field("readOnly", Bool), field("server", Str)]);
pub(super) static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Object =
    object("PersistentVolumeClaimVolumeSource", &[field("claimName", Str), field("readOnly", Bool)]);
pub(super) static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Object =
    object("PhotonPersistentDiskVolumeSource", &[field("fsType", Str), field("pdID", Str)]);
pub(super) static PORTWORX_VOLUME_SOURCE: Object =
    object("PortworxVolumeSource", &[field("fsType", Str), field("readOnly", Bool), field("volumeID", Str)]);
pub(super) static PROJECTED_VOLUME_SOURCE: Object = object(
    "ProjectedVolumeSource",
    &[field("defaultMode", Int32), field("defaultUser", Int64), field("sources", List(&Object(&VOLUME_PROJECTION)))],
);
pub(super) static VOLUME_PROJECTION: Object = object(
    "VolumeProjection",
    &[
        field("clusterTrustBundle", Object(&CLUSTER_TRUST_BUNDLE_PROJECTION))
            .warned("there is no cluster that has one: the file is not there"),
        field("configMap", Object(&CONFIG_MAP_PROJECTION)),
        field("downwardAPI", Object(&DOWNWARD_API_PROJECTION)),
        field("podCertificate", Object(&POD_CERTIFICATE_PROJECTION))
            .warned("there is no cluster that signs it: the file is not there"),
        field("secret", Object(&SECRET_PROJECTION)),
        field("serviceAccountToken", Object(&SERVICE_ACCOUNT_TOKEN_PROJECTION))
            .warned("there are no service accounts: the file is not there"),
    ],
);
pub(super) static CLUSTER_TRUST_BUNDLE_PROJECTION: Object = object(
    "ClusterTrustBundleProjection",
    &[
        field("labelSelector", Object(&LABEL_SELECTOR)),
        field("name", Str),
        field("optional", Bool),
        field("path", Str),
        field("signerName", Str),
        field("user", Int64),
    ],
);
pub(super) static CONFIG_MAP_PROJECTION: Object = object(
    "ConfigMapProjection",
    &[field("items", List(&Object(&KEY_TO_PATH))), field("name", Str), field("optional", Bool)],
);
pub(super) static DOWNWARD_API_PROJECTION: Object =
    object("DownwardAPIProjection", &[field("items", List(&Object(&DOWNWARD_API_VOLUME_FILE)))]);
pub(super) static POD_CERTIFICATE_PROJECTION: Object = object(
    "PodCertificateProjection",
    &[
        field("certificateChainPath", Str),
        field("credentialBundlePath", Str),
        field("keyPath", Str),
        field("keyType", Str),
        field("maxExpirationSeconds", Int32),
        field("signerName", Str),
        field("user", Int64),
        field("userAnnotations", Map(&Str)),
    ],
);
pub(super) static SECRET_PROJECTION: Object = object(
    "SecretProjection",
    &[field("items", List(&Object(&KEY_TO_PATH))), field("name", Str), field("optional", Bool)],
);
pub(super) static SERVICE_ACCOUNT_TOKEN_PROJECTION: Object = object(
    "ServiceAccountTokenProjection",
    &[field("audience", Str), field("expirationSeconds", Int64), field("path", Str), field("user", Int64)],
);
pub(super) static QUOBYTE_VOLUME_SOURCE: Object = object(
    "QuobyteVolumeSource",
    &[
        field("group", Str),
        field("readOnly", Bool),
        field("registry", Str),
        field("tenant", Str),
        field("user", Str),
        field("volume", Str),
    ],
);
pub(super) static RBD_VOLUME_SOURCE: Object = object(
    "RBDVolumeSource",
    &[
        field("fsType", Str),
        field("image", Str),
        field("keyring", Str),
        field("monitors", List(&Str)),
        field("pool", Str),
        field("readOnly", Bool),
        field("secretRef", Object(&LOCAL_OBJECT_REFERENCE)),
        field("user", Str),
    ],
);
pub(super) static SCALE_IO_VOLUME_SOURCE: Object = object(
    "ScaleIOVolumeSource",
    &[
        field("fsType", Str),
        field("gateway", Str),
        field("protectionDomain", Str),
        field("readOnly", Bool),
        field("secretRef", Object(&LOCAL_OBJECT_REFERENCE)),
        field("sslEnabled", Bool),
        field("storageMode", Str),
        field("storagePool", Str),
        field("system", Str),
        field("volumeName", Str),
    ],
);
pub(super) static SECRET_VOLUME_SOURCE: Object = object(
    "SecretVolumeSource",
    &[
        field("defaultMode", Int32),
        field("defaultUser", Int64),
        field("items", List(&Object(&KEY_TO_PATH))),
        field("optional", Bool),
        field("secretName", Str),
    ],
);
pub(super) static STORAGE_OS_VOLUME_SOURCE: Object = object(
    "StorageOSVolumeSource",
    &[
        field("fsType", Str),
        field("readOnly", Bool),
        field("secretRef", Object(&LOCAL_OBJECT_REFERENCE)),
        field("volumeName", Str),
        field("volumeNamespace", Str),
    ],
);
pub(super) static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Object = object(
    "VsphereVirtualDiskVolumeSource",
    &[field("fsType", Str), field("storagePolicyID", Str), field("storagePolicyName", Str), field("volumePath", Str)],
);
pub(super) static PERSISTENT_VOLUME_CLAIM: Object = object(
    "PersistentVolumeClaim",
    &[
        field("apiVersion", Str),
        field("kind", Str),
        field("metadata", Object(&OBJECT_META)),
        field("spec", Object(&PERSISTENT_VOLUME_CLAIM_SPEC)),
        field("status", Any),
    ],
);

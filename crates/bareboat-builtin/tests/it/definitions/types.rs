//! The list of types with descriptions: the built-in kinds and everything they refer to.
//!
//! Rust cannot enumerate types, so they are listed here. Tests fail if one is missing.

use super::Described;
use schemars::JsonSchema;

macro_rules! types {
    ($($module:tt $package:literal { $($name:ident)* })*) => {
        /// All types with descriptions.
        pub(super) static TYPES: &[Described] = &[$($(described!($module $package $name),)*)*];
    };
}

macro_rules! described {
    ([$($module:ident)::+] $package:literal $name:ident) => {
        Described {
            name: concat!($package, stringify!($name)),
            schema: <k8s_openapi::$($module)::+::$name as JsonSchema>::json_schema,
        }
    };
}

types! {
    [api::admissionregistration::v1] "io.k8s.api.admissionregistration.v1." {
        ApplyConfiguration AuditAnnotation ExpressionWarning JSONPatch MatchCondition
        MatchResources MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
        MutatingAdmissionPolicyBindingSpec MutatingAdmissionPolicySpec MutatingWebhook
        MutatingWebhookConfiguration Mutation NamedRuleWithOperations ParamKind ParamRef
        RuleWithOperations ServiceReference TypeChecking ValidatingAdmissionPolicy
        ValidatingAdmissionPolicyBinding ValidatingAdmissionPolicyBindingSpec
        ValidatingAdmissionPolicySpec ValidatingAdmissionPolicyStatus ValidatingWebhook
        ValidatingWebhookConfiguration Validation Variable WebhookClientConfig
    }
    [api::apps::v1] "io.k8s.api.apps.v1." {
        ControllerRevision DaemonSet DaemonSetCondition DaemonSetSpec DaemonSetStatus
        DaemonSetUpdateStrategy Deployment DeploymentCondition DeploymentSpec DeploymentStatus
        DeploymentStrategy ReplicaSet ReplicaSetCondition ReplicaSetSpec ReplicaSetStatus
        RollingUpdateDaemonSet RollingUpdateDeployment RollingUpdateStatefulSetStrategy
        StatefulSet StatefulSetCondition StatefulSetOrdinals
        StatefulSetPersistentVolumeClaimRetentionPolicy StatefulSetSpec StatefulSetStatus
        StatefulSetUpdateStrategy
    }
    [api::authentication::v1] "io.k8s.api.authentication.v1." {
        BoundObjectReference SelfSubjectReview SelfSubjectReviewStatus TokenRequest
        TokenRequestSpec TokenRequestStatus TokenReview TokenReviewSpec TokenReviewStatus UserInfo
    }
    [api::authorization::v1] "io.k8s.api.authorization.v1." {
        FieldSelectorAttributes LabelSelectorAttributes LocalSubjectAccessReview
        NonResourceAttributes NonResourceRule ResourceAttributes ResourceRule
        SelfSubjectAccessReview SelfSubjectAccessReviewSpec SelfSubjectRulesReview
        SelfSubjectRulesReviewSpec SubjectAccessReview SubjectAccessReviewSpec
        SubjectAccessReviewStatus SubjectRulesReviewStatus
    }
    [api::autoscaling::v1] "io.k8s.api.autoscaling.v1." {
        CrossVersionObjectReference HorizontalPodAutoscaler HorizontalPodAutoscalerSpec
        HorizontalPodAutoscalerStatus Scale ScaleSpec ScaleStatus
    }
    [api::autoscaling::v2] "io.k8s.api.autoscaling.v2." {
        ContainerResourceMetricSource ContainerResourceMetricStatus CrossVersionObjectReference
        ExternalMetricSource ExternalMetricStatus HPAScalingPolicy HPAScalingRules
        HorizontalPodAutoscaler HorizontalPodAutoscalerBehavior HorizontalPodAutoscalerCondition
        HorizontalPodAutoscalerSpec HorizontalPodAutoscalerStatus MetricIdentifier MetricSpec
        MetricStatus MetricTarget MetricValueStatus ObjectMetricSource ObjectMetricStatus
        PodsMetricSource PodsMetricStatus ResourceMetricSource ResourceMetricStatus
    }
    [api::batch::v1] "io.k8s.api.batch.v1." {
        CronJob CronJobSpec CronJobStatus Job JobCondition JobSpec JobStatus JobTemplateSpec
        PodFailurePolicy PodFailurePolicyOnExitCodesRequirement
        PodFailurePolicyOnPodConditionsPattern PodFailurePolicyRule SuccessPolicy
        SuccessPolicyRule UncountedTerminatedPods
    }
    [api::certificates::v1] "io.k8s.api.certificates.v1." {
        CertificateSigningRequest CertificateSigningRequestCondition CertificateSigningRequestSpec
        CertificateSigningRequestStatus
    }
    [api::coordination::v1] "io.k8s.api.coordination.v1." {
        Lease LeaseSpec
    }
    [api::core::v1] "io.k8s.api.core.v1." {
        AWSElasticBlockStoreVolumeSource Affinity AppArmorProfile AttachedVolume
        AzureDiskVolumeSource AzureFilePersistentVolumeSource AzureFileVolumeSource Binding
        CSIPersistentVolumeSource CSIVolumeSource Capabilities CephFSPersistentVolumeSource
        CephFSVolumeSource CinderPersistentVolumeSource CinderVolumeSource ClientIPConfig
        ClusterTrustBundleProjection ComponentCondition ComponentStatus ConfigMap
        ConfigMapEnvSource ConfigMapKeySelector ConfigMapNodeConfigSource ConfigMapProjection
        ConfigMapVolumeSource Container ContainerExtendedResourceRequest ContainerImage
        ContainerPort ContainerResizePolicy ContainerRestartRule ContainerRestartRuleOnExitCodes
        ContainerState ContainerStateRunning ContainerStateTerminated ContainerStateWaiting
        ContainerStatus ContainerUser DaemonEndpoint DownwardAPIProjection DownwardAPIVolumeFile
        DownwardAPIVolumeSource EmptyDirVolumeSource EndpointAddress EndpointPort EndpointSubset
        Endpoints EnvFromSource EnvVar EnvVarSource EphemeralContainer EphemeralVolumeSource Event
        EventSeries EventSource ExecAction FCVolumeSource FileKeySelector
        FlexPersistentVolumeSource FlexVolumeSource FlockerVolumeSource
        GCEPersistentDiskVolumeSource GRPCAction GitRepoVolumeSource
        GlusterfsPersistentVolumeSource GlusterfsVolumeSource HTTPGetAction HTTPHeader HostAlias
        HostIP HostPathVolumeSource ISCSIPersistentVolumeSource ISCSIVolumeSource
        ImageVolumeSource ImageVolumeStatus KeyToPath Lifecycle LifecycleHandler LimitRange
        LimitRangeItem LimitRangeSpec LinuxContainerUser LoadBalancerIngress LoadBalancerStatus
        LocalObjectReference LocalVolumeSource ModifyVolumeStatus NFSVolumeSource Namespace
        NamespaceCondition NamespaceSpec NamespaceStatus Node NodeAddress NodeAffinity
        NodeAllocatableResourceClaimStatus NodeCondition NodeConfigSource NodeConfigStatus
        NodeDaemonEndpoints NodeFeatures NodeRuntimeHandler NodeRuntimeHandlerFeatures
        NodeSelector NodeSelectorRequirement NodeSelectorTerm NodeSpec NodeStatus NodeSwapStatus
        NodeSystemInfo ObjectFieldSelector ObjectReference PersistentVolume PersistentVolumeClaim
        PersistentVolumeClaimCondition PersistentVolumeClaimSpec PersistentVolumeClaimStatus
        PersistentVolumeClaimTemplate PersistentVolumeClaimVolumeSource PersistentVolumeSpec
        PersistentVolumeStatus PhotonPersistentDiskVolumeSource Pod PodAffinity PodAffinityTerm
        PodAntiAffinity PodCertificateProjection PodCondition PodDNSConfig PodDNSConfigOption
        PodExtendedResourceClaimStatus PodIP PodOS PodReadinessGate PodResourceClaim
        PodResourceClaimStatus PodSchedulingGate PodSchedulingGroup PodSecurityContext PodSpec
        PodStatus PodTemplate PodTemplateSpec PortStatus PortworxVolumeSource
        PreferredSchedulingTerm Probe ProjectedVolumeSource QuobyteVolumeSource
        RBDPersistentVolumeSource RBDVolumeSource ReplicationController
        ReplicationControllerCondition ReplicationControllerSpec ReplicationControllerStatus
        ResourceClaim ResourceFieldSelector ResourceHealth ResourceQuota ResourceQuotaSpec
        ResourceQuotaStatus ResourceRequirements ResourceStatus SELinuxOptions
        ScaleIOPersistentVolumeSource ScaleIOVolumeSource ScopeSelector
        ScopedResourceSelectorRequirement SeccompProfile Secret SecretEnvSource SecretKeySelector
        SecretProjection SecretReference SecretVolumeSource SecurityContext Service ServiceAccount
        ServiceAccountTokenProjection ServicePort ServiceSpec ServiceStatus SessionAffinityConfig
        SleepAction StorageOSPersistentVolumeSource StorageOSVolumeSource Sysctl TCPSocketAction
        Taint Toleration TopologySelectorLabelRequirement TopologySelectorTerm
        TopologySpreadConstraint TypedLocalObjectReference TypedObjectReference Volume
        VolumeDevice VolumeMount VolumeMountStatus VolumeNodeAffinity VolumeProjection
        VolumeResourceRequirements VolumeStatus VsphereVirtualDiskVolumeSource
        WeightedPodAffinityTerm WindowsSecurityContextOptions
    }
    [api::discovery::v1] "io.k8s.api.discovery.v1." {
        Endpoint EndpointConditions EndpointHints EndpointPort EndpointSlice ForNode ForZone
    }
    [api::events::v1] "io.k8s.api.events.v1." {
        Event EventSeries
    }
    [api::flowcontrol::v1] "io.k8s.api.flowcontrol.v1." {
        ExemptPriorityLevelConfiguration FlowDistinguisherMethod FlowSchema FlowSchemaCondition
        FlowSchemaSpec FlowSchemaStatus GroupSubject LimitResponse
        LimitedPriorityLevelConfiguration NonResourcePolicyRule PolicyRulesWithSubjects
        PriorityLevelConfiguration PriorityLevelConfigurationCondition
        PriorityLevelConfigurationReference PriorityLevelConfigurationSpec
        PriorityLevelConfigurationStatus QueuingConfiguration ResourcePolicyRule
        ServiceAccountSubject Subject UserSubject
    }
    [api::networking::v1] "io.k8s.api.networking.v1." {
        HTTPIngressPath HTTPIngressRuleValue IPAddress IPAddressSpec IPBlock Ingress
        IngressBackend IngressClass IngressClassParametersReference IngressClassSpec
        IngressLoadBalancerIngress IngressLoadBalancerStatus IngressPortStatus IngressRule
        IngressServiceBackend IngressSpec IngressStatus IngressTLS NetworkPolicy
        NetworkPolicyEgressRule NetworkPolicyIngressRule NetworkPolicyPeer NetworkPolicyPort
        NetworkPolicySpec ParentReference ServiceBackendPort ServiceCIDR ServiceCIDRSpec
        ServiceCIDRStatus
    }
    [api::node::v1] "io.k8s.api.node.v1." {
        Overhead RuntimeClass Scheduling
    }
    [api::policy::v1] "io.k8s.api.policy.v1." {
        Eviction PodDisruptionBudget PodDisruptionBudgetSpec PodDisruptionBudgetStatus
    }
    [api::rbac::v1] "io.k8s.api.rbac.v1." {
        AggregationRule ClusterRole ClusterRoleBinding PolicyRule Role RoleBinding RoleRef Subject
    }
    [api::resource::v1] "io.k8s.api.resource.v1." {
        AllocatedDeviceStatus AllocationResult CELDeviceSelector CapacityRequestPolicy
        CapacityRequestPolicyRange CapacityRequirements Counter CounterSet Device
        DeviceAllocationConfiguration DeviceAllocationResult DeviceAttribute DeviceCapacity
        DeviceClaim DeviceClaimConfiguration DeviceClass DeviceClassConfiguration DeviceClassSpec
        DeviceConstraint DeviceCounterConsumption DeviceRequest DeviceRequestAllocationResult
        DeviceSelector DeviceSubRequest DeviceTaint DeviceToleration ExactDeviceRequest
        NetworkDeviceData NodeAllocatableResourceMapping OpaqueDeviceConfiguration ResourceClaim
        ResourceClaimConsumerReference ResourceClaimSpec ResourceClaimStatus ResourceClaimTemplate
        ResourceClaimTemplateSpec ResourcePool ResourceSlice ResourceSliceSpec
    }
    [api::scheduling::v1] "io.k8s.api.scheduling.v1." {
        PriorityClass
    }
    [api::storage::v1] "io.k8s.api.storage.v1." {
        CSIDriver CSIDriverSpec CSINode CSINodeDriver CSINodeSpec CSIStorageCapacity StorageClass
        TokenRequest VolumeAttachment VolumeAttachmentSource VolumeAttachmentSpec
        VolumeAttachmentStatus VolumeAttributesClass VolumeError VolumeNodeResources
    }
    [apiextensions_apiserver::pkg::apis::apiextensions::v1]
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1." {
        CustomResourceColumnDefinition CustomResourceConversion CustomResourceDefinition
        CustomResourceDefinitionCondition CustomResourceDefinitionNames
        CustomResourceDefinitionSpec CustomResourceDefinitionStatus
        CustomResourceDefinitionVersion CustomResourceSubresourceScale
        CustomResourceSubresourceStatus CustomResourceSubresources CustomResourceValidation
        ExternalDocumentation JSON JSONSchemaProps JSONSchemaPropsOrArray JSONSchemaPropsOrBool
        JSONSchemaPropsOrStringArray SelectableField ServiceReference ValidationRule
        WebhookClientConfig WebhookConversion
    }
    [apimachinery::pkg::api::resource] "io.k8s.apimachinery.pkg.api.resource." {
        Quantity
    }
    [apimachinery::pkg::apis::meta::v1] "io.k8s.apimachinery.pkg.apis.meta.v1." {
        APIGroup APIGroupList APIResource APIResourceList APIVersions Condition DeleteOptions
        FieldSelectorRequirement FieldsV1 GroupVersionForDiscovery LabelSelector
        LabelSelectorRequirement ListMeta ManagedFieldsEntry MicroTime ObjectMeta OwnerReference
        Preconditions ServerAddressByClientCIDR ShardInfo Status StatusCause StatusDetails Time
    }
    [apimachinery::pkg::runtime] "io.k8s.apimachinery.pkg.runtime." {
        RawExtension
    }
    [apimachinery::pkg::util::intstr] "io.k8s.apimachinery.pkg.util.intstr." {
        IntOrString
    }
    [apimachinery::pkg::version] "io.k8s.apimachinery.pkg.version." {
        Info
    }
    [kube_aggregator::pkg::apis::apiregistration::v1]
    "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1." {
        APIService APIServiceCondition APIServiceSpec APIServiceStatus ServiceReference
    }
}

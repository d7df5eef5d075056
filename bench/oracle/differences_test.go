package oracle_test

// noOracle are the pairs that no release's code can be asked about, and why.
var noOracle = map[string]string{
	"certificates-v1alpha1/podcertificaterequests":             "only 1.34 has v1alpha1, and it has nothing else",
	"certificates-v1alpha1/podcertificaterequests-to-v1":       "only 1.34 has v1alpha1, and it has nothing else",
	"coordination-v1alpha1/leasecandidates":                    "only 1.31 has v1alpha1, and it has nothing else",
	"coordination-v1alpha1/leasecandidates-to-v1beta1":         "only 1.31 has v1alpha1, and it has nothing else",
	"storagemigration-v1alpha1/storageversionmigrations":       "only releases up to 1.34 have v1alpha1, and they have nothing else",
	"storagemigration-v1alpha1/storageversionmigrations-to-v1": "only releases up to 1.34 have v1alpha1, and they have nothing else",
}

// rightDifferences are all of them.
var rightDifferences = []rightDifference{
	{
		pair: "resource-v1*/resourceslices*", property: "up", path: "spec.devices[].taints[].timeAdded", chance: true,
		reason: "a time that is not set is the present second, which may be over when the other object is stored",
	},
	{
		pair: "resource-v1alpha3/*-to-v1", property: "down", path: "metadata.creationTimestamp",
		reason: "a time that is not set is null in what 1.32 writes, and left out in what 1.37 does",
	},
	{
		pair: "resource-v1alpha3/resourceclaimtemplates-to-v1", property: "down", path: "spec.metadata.creationTimestamp",
		reason: "a time that is not set is null in what 1.32 writes, and left out in what 1.37 does",
	},
	{
		pair: "networking-v1alpha1/*-to-v1", property: "down", path: "metadata.creationTimestamp",
		reason: "a time that is not set is null in what 1.32 writes, and left out in what 1.37 does",
	},
	{
		pair: "admissionregistration-v1alpha1/*bindings", property: "back", path: "spec.paramRef.parameterNotFoundAction",
		reason: "a server of v1 stores no parameter reference without the action, which it requires",
	},
	{
		pair: "discovery-v1beta1/endpointslices", property: "up", path: "endpoints[].nodeName",
		reason: "the node that only the topology names would be lost: what v1 is sent as deprecatedTopology it drops",
	},
	{
		pair: "discovery-v1beta1/endpointslices", property: "up", path: "endpoints[].deprecatedTopology",
		reason: "the node that only the topology names is the nodeName",
	},
	{
		pair: "discovery-v1beta1/endpointslices", property: "up", path: "endpoints[].zone",
		reason: "a zone of null is none; kube-apiserver's code reads it as the empty text, which it then refuses",
	},
	{
		pair: "rbac-v1alpha1/*bindings", property: "back", path: "subjects[].apiGroup",
		reason: "a text with a slash is no group, and v1 refuses every group but its own",
	},
	{
		pair: "flowcontrol-v1beta2/prioritylevelconfigurations", property: "back", path: "spec.limited.nominalConcurrencyShares",
		reason: "0 shares are 30 in the old version, and kube-apiserver has no way to say 0 in it, either",
	},
	{
		pair: "flowcontrol-v1beta1/prioritylevelconfigurations-to-v1", property: "back", path: "spec.limited.nominalConcurrencyShares",
		reason: "0 shares are 30 in the old version, and kube-apiserver has no way to say 0 in it, either",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "up", path: "metadata.annotations",
		reason: "v1 refuses preserveUnknownFields: the schema is marked instead, and an annotation says so for the way back",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "up", path: "spec.preserveUnknownFields",
		reason: "v1 refuses preserveUnknownFields: the schema is marked instead, and an annotation says so for the way back",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "up", path: "spec.versions[].schema",
		reason: "v1 refuses preserveUnknownFields: the schema is marked instead, and an annotation says so for the way back",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "back", path: "metadata.annotations",
		reason: "v1 refuses preserveUnknownFields: the schema is marked instead, and an annotation says so for the way back",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "back", path: "spec.preserveUnknownFields",
		reason: "v1 refuses preserveUnknownFields: the schema is marked instead, and an annotation says so for the way back",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "back", path: "spec.scope",
		reason: "a server of v1 stores no definition without a scope, which it requires",
	},
	{
		pair: "admissionregistration-v1beta1/*webhookconfigurations", property: "down", path: "webhooks[].admissionReviewVersions",
		reason: "a server of v1 stores no webhook without it, which it requires",
	},
	{
		pair: "admissionregistration-v1beta1/*webhookconfigurations", property: "down", path: "webhooks[].sideEffects",
		reason: "a server of v1 stores no webhook without it, which it requires",
	},
	{
		pair: "autoscaling-v2beta2/horizontalpodautoscalers", property: "down", path: "status.conditions",
		reason: "v2 leaves out what is empty: every client reads it the same, and a program that writes it would cost each patch a read",
	},
	{
		pair: "autoscaling-v2beta2/horizontalpodautoscalers", property: "down", path: "status.currentReplicas",
		reason: "v2 leaves out what is empty: every client reads it the same, and a program that writes it would cost each patch a read",
	},
	{
		pair: "autoscaling-v2beta2/horizontalpodautoscalers", property: "down", path: "spec.behavior.scaleUp.policies",
		reason: "a server of v2 stores no empty list of policies, which it refuses; left out in JSON, the code takes it for the default",
	},
	{
		pair: "autoscaling-v2beta2/horizontalpodautoscalers", property: "down", path: "spec.behavior.scaleDown.policies",
		reason: "a server of v2 stores no empty list of policies, which it refuses; left out in JSON, the code takes it for the default",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "down", path: "metadata.annotations[\"autoscaling.alpha.kubernetes.io/behavior\"]",
		reason: "a server of v2 stores no empty list of policies, which it refuses; left out in JSON, the code takes it for the default",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "up", path: "spec.metrics[].containerResource.container",
		reason: "kube-apiserver's code forgets which container is meant",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "down", path: "spec.metrics[].containerResource.container",
		reason: "kube-apiserver's code forgets which container is meant",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "back", path: "spec.metrics[].resource.target",
		reason: "a server of v2 stores no target without a type and the quantity of that type, and a program takes the type from the quantities",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "back", path: "spec.metrics[].containerResource.target",
		reason: "a server of v2 stores no target without a type and the quantity of that type, and a program takes the type from the quantities",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "back", path: "spec.metrics[].object.target",
		reason: "a server of v2 stores no target without a type and the quantity of that type, and a program takes the type from the quantities",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "back", path: "spec.metrics[].external.target",
		reason: "a server of v2 stores no target without a type and the quantity of that type, and a program takes the type from the quantities",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "back", path: "spec.versions",
		reason: "a server of v1 stores no definition without a version, which it requires",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "back", path: "spec.conversion.webhook",
		reason: "a server of v1 stores no webhook without review versions, which it requires",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "back", path: "status.currentMetrics",
		reason: "v2beta1 has one quantity of a metric that is always there, and none that fits no metric of the kind",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "down", path: "spec.versions[].schema.openAPIV3Schema.additionalProperties.not.items", chance: true,
		reason: "items of null says nothing, which kube-apiserver's code leaves out when it reads it",
	},
	{
		pair: "apiextensions-v1beta1/customresourcedefinitions", property: "down", path: "spec.validation.openAPIV3Schema.additionalProperties.not.items", chance: true,
		reason: "items of null says nothing, which kube-apiserver's code leaves out when it reads it",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "back", path: "spec.behavior.scaleDown.policies",
		reason: "a server of v2 stores no empty list of policies, which it refuses; left out in JSON, the code takes it for the default",
	},
	{
		pair: "autoscaling-v2beta1/horizontalpodautoscalers", property: "back", path: "spec.metrics[].pods.target",
		reason: "a server of v2 stores no target without a type and the quantity of that type, and a program takes the type from the quantities",
	},
	{
		pair: "resource-v1alpha3/resourceclaims-to-v1", property: "up", path: "spec.devices.requests[].exactly", got: "nothing",
		reason: "the code of 1.32 knows no firstAvailable and fills in a mode and a count for every request; one without a class and anything else is refused either way",
	},
	{
		pair: "resource-v1alpha3/resourceclaimtemplates-to-v1", property: "up", path: "spec.spec.devices.requests[].exactly", got: "nothing",
		reason: "the code of 1.32 knows no firstAvailable and fills in a mode and a count for every request; one without a class and anything else is refused either way",
	},
	{
		pair: "resource-v1alpha3/resourceclaims-to-v1", property: "down", path: "status.allocation.devices.results[].adminAccess", got: "nothing",
		reason: "what is not set is null in what 1.32 writes, and left out in what 1.37 does: every client reads it the same, and a program that writes it would cost each patch a read",
	},
	{
		pair: "resource-v1alpha3/resourceclaims-to-v1", property: "down", path: "status.devices[].data", got: "nothing",
		reason: "what is not set is null in what 1.32 writes, and left out in what 1.37 does: every client reads it the same, and a program that writes it would cost each patch a read",
	},
	{
		pair: "certificates-v1beta1/podcertificaterequests", property: "down", path: "spec.pkixPublicKey", got: "nothing",
		reason: "v1 cannot hold it, so it is always null: every client reads it the same, and a program that writes it would cost each patch a read",
	},
	{
		pair: "certificates-v1beta1/podcertificaterequests", property: "down", path: "spec.proofOfPossession", got: "nothing",
		reason: "v1 cannot hold it, so it is always null: every client reads it the same, and a program that writes it would cost each patch a read",
	},
	{
		pair: "batch-v2alpha1/cronjobs", property: "down", path: "spec.jobTemplate.spec.template.spec.hostAliases[].ip",
		reason: "an address that is not set is empty in what 1.32 writes, and left out in what 1.20 does; a server of v1 stores no alias without it",
	},
	{
		pair: "flowcontrol-v1alpha1/prioritylevelconfigurations-to-*", property: "down", path: "spec.limited.lendablePercent",
		reason: "newer servers lend shares, which the code of 1.20 does not know: clients that do not either pass over it, and a patch keeps it",
	},
}

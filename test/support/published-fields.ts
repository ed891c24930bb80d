/**
 * Fields of the bodies of requests, as the published lists of both APIs name them: `{a b{c}}` is an object, `*{…}` a list of objects. Only of what is
 * answered here.
 */
export const publishedFields = {
  host: {
    'POST /v1/edge-mgmt/cluster':
      '{metadata{creationTimestamp id labels lastModifiedTimestamp name tags} spec{archiveUploadPath cloudConfig{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name namespace resourceVersion selfLink uid} spec{clusterConfig{controlPlaneEndpoint{ddnsSearchDomain host type} isTwoNodeCluster ntpServers overlayNetworkConfiguration{cidr enable} sshKeys staticIp} machinePoolConfig*{additionalLabels additionalTags hosts*{IsCandidateCaption caCert hostAddress hostName hostUid networkInfo*{dns gateway ip isDefault macAddr nicName subnet} nic{dns gateway ip isDefault macAddr nicName subnet} nicName nodeInfo{age architecture conditions*{lastProbeTime lastTransitionTime message reason status type} health{reason status} ipv4 k8sVersion nodeName nodeState} staticIP tags twoNodeCandidatePriority} isControlPlane labels machinePoolProperties{archType} maxSize minSize name nodeRepaveInterval osType size skipK8sUpgrade taints*{effect key timeAdded value} updateStrategy{type} useControlPlaneAsWorker}}} profileVariables*{name profileUid value} scheduleAt}}',
    'PATCH /v1/edge-mgmt/cluster':
      '{metadata{creationTimestamp id labels lastModifiedTimestamp name tags} spec{archiveUploadPath cloudConfig{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name namespace resourceVersion selfLink uid} spec{clusterConfig{controlPlaneEndpoint{ddnsSearchDomain host type} isTwoNodeCluster ntpServers overlayNetworkConfiguration{cidr enable} sshKeys staticIp} machinePoolConfig*{additionalLabels additionalTags hosts*{IsCandidateCaption caCert hostAddress hostName hostUid networkInfo*{dns gateway ip isDefault macAddr nicName subnet} nic{dns gateway ip isDefault macAddr nicName subnet} nicName nodeInfo{age architecture conditions*{lastProbeTime lastTransitionTime message reason status type} health{reason status} ipv4 k8sVersion nodeName nodeState} staticIP tags twoNodeCandidatePriority} isControlPlane labels machinePoolProperties{archType} maxSize minSize name nodeRepaveInterval osType size skipK8sUpgrade taints*{effect key timeAdded value} updateStrategy{type} useControlPlaneAsWorker}}} profileVariables*{name profileUid value} scheduleAt}}',
    'PUT /v1/edge-mgmt/cluster/profiles':
      '{metadata{creationTimestamp id labels lastModifiedTimestamp name tags} spec{archiveUploadPath}}',
    'POST /v1/edge-mgmt/cluster/profiles/variables/validate':
      '{archiveUploadPath metadata{creationTimestamp id labels lastModifiedTimestamp name tags} variables*{name profileUid value}}',
    'PUT /v1/edge-mgmt/cluster/settings': '{ntpServers sshKeys}',
    'PUT /v1/edge-mgmt/cluster/{clusterName}':
      '{metadata{creationTimestamp id labels lastModifiedTimestamp name tags} spec{archiveUploadPath cloudConfig{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name namespace resourceVersion selfLink uid} spec{clusterConfig{controlPlaneEndpoint{ddnsSearchDomain host type} isTwoNodeCluster ntpServers overlayNetworkConfiguration{cidr enable} sshKeys staticIp} machinePoolConfig*{additionalLabels additionalTags hosts*{IsCandidateCaption caCert hostAddress hostName hostUid networkInfo*{dns gateway ip isDefault macAddr nicName subnet} nic{dns gateway ip isDefault macAddr nicName subnet} nicName nodeInfo{age architecture conditions*{lastProbeTime lastTransitionTime message reason status type} health{reason status} ipv4 k8sVersion nodeName nodeState} staticIP tags twoNodeCandidatePriority} isControlPlane labels machinePoolProperties{archType} maxSize minSize name nodeRepaveInterval osType size skipK8sUpgrade taints*{effect key timeAdded value} updateStrategy{type} useControlPlaneAsWorker}}} profileVariables*{name profileUid value} scheduleAt}}',
    'PATCH /v1/edge-mgmt/cluster/{clusterName}': '{clusterConfigPatches*{op path value}}',
    'POST /v1/users/default/login': '{password username}',
    'POST /v1/users/default/password/reset': '{newPassword oldPassword}',
    'POST /v1/users/default/token/renewal': '{refreshToken}',
  },
  platform: {
    'POST /v1/auth/authenticate': '{emailId org password}',
    'POST /v1/users/auth/tokens/revoke': '{tokens}',
    'POST /v1/users':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{emailId firstName lastName loginMode roles teams}}',
    'PUT /v1/users/{uid}/roles': '{roles}',
    'PATCH /v1/auth/password/{passwordToken}/activate': '{password}',
    'POST /v1/auth/user/password/reset': '{emailId}',
    'PATCH /v1/users/password/change': '{emailId currentPassword newPassword}',
    'POST /v1/apiKeys':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{expiry userUid}}',
    'PUT /v1/apiKeys/{uid}':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{expiry}}',
    'PUT /v1/apiKeys/{uid}/state': '{isActive}',
    'POST /v1/projects':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{logoUid users*{roles userId}}}',
    'PUT /v1/projects/{uid}':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{logoUid users*{roles userId}}}',
    'DELETE /v1/projects/{uid}':
      '{deletingClusterDurationThresholdInMin provisioningClusterDurationThresholdInMin}',
    'POST /v1/edgehosts/tokens':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{defaultProjectUid expiry}}',
    'PUT /v1/edgehosts/tokens/{uid}':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{defaultProjectUid expiry}}',
    'PUT /v1/edgehosts/tokens/{uid}/state': '{isActive}',
    'POST /v1/edgehosts/register':
      '{aclmeta{ownerUid projectUid tenantUid} metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{cloudProperties clusterProfileTemplates*{cloudType name packServerRefs*{kind name uid} packServerSecret packs*{annotations digest inValidReason isInvalid layer logo manifests*{kind name uid} name packUid params presets*{add displayName group name remove} registryUid schema*{format hints listOptions name readonly regex required type} server tag type values version} profileVersion relatedObject{kind name uid} type uid version} device{archType cpu{cores} disks*{controller partitions*{fileSystemType freeSpace mountPoint totalSpace usedSpace} size vendor} gpus*{addresses gpuCount memory migCapable migStrategy model vendor} hostState hostType memory{sizeInMB} nics*{dns gateway ip isDefault macAddr nicName subnet} os{family kernel kernelVersion version} secureBoot} host{disableAutoRegister hostAddress hostAuthToken hostChecksum hostIdentity{caCert mode socketPath} hostPairingKey hostUid macAddress project{name uid} remoteSsh} properties service{name version} type version} status{health{agentVersion message state} inUseClusters*{name uid} inUseClustersRef*{name uid} packs*{condition{lastProbeTime lastTransitionTime message reason status type} endTime manifests*{condition{lastProbeTime lastTransitionTime message reason status type} name uid} name profileUid services*{host name ports*{port protocol}} startTime type version} profileStatus{hasUserMacros} serviceAuthToken state}}',
    'PUT /v1/edgehosts/{uid}':
      '{aclmeta{ownerUid projectUid tenantUid} metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{cloudProperties clusterProfileTemplates*{cloudType name packServerRefs*{kind name uid} packServerSecret packs*{annotations digest inValidReason isInvalid layer logo manifests*{kind name uid} name packUid params presets*{add displayName group name remove} registryUid schema*{format hints listOptions name readonly regex required type} server tag type values version} profileVersion relatedObject{kind name uid} type uid version} device{archType cpu{cores} disks*{controller partitions*{fileSystemType freeSpace mountPoint totalSpace usedSpace} size vendor} gpus*{addresses gpuCount memory migCapable migStrategy model vendor} hostState hostType memory{sizeInMB} nics*{dns gateway ip isDefault macAddr nicName subnet} os{family kernel kernelVersion version} secureBoot} host{disableAutoRegister hostAddress hostAuthToken hostChecksum hostIdentity{caCert mode socketPath} hostPairingKey hostUid macAddress project{name uid} remoteSsh} properties service{name version} type version} status{health{agentVersion message state} inUseClusters*{name uid} inUseClustersRef*{name uid} packs*{condition{lastProbeTime lastTransitionTime message reason status type} endTime manifests*{condition{lastProbeTime lastTransitionTime message reason status type} name uid} name profileUid services*{host name ports*{port protocol}} startTime type version} profileStatus{hasUserMacros} serviceAuthToken state}}',
    'PUT /v1/edgehosts/{uid}/meta': '{metadata{labels name uid}}',
    'PATCH /v1/edgehosts/{uid}/health': '{agentVersion message state}',
    'PATCH /v1/edgehosts/{uid}/packs/status':
      '{packs*{condition{message reason status type} endTime name profileUid startTime type version}}',
    'POST /v1/clusterprofiles/import':
      '{metadata{description labels name} spec{template{cloudType packs*{layer manifests*{content name} name tag type values version} type} variables*{defaultValue description displayName format hidden immutable inputType isSensitive name options*{default description label value} regex required} version}}',
    'PUT /v1/clusterprofiles/{uid}/variables':
      '{variables*{defaultValue description displayName format hidden immutable inputType isSensitive name options*{default description label value} regex required}}',
    'POST /v1/spectroclusters/edge-native':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{cloudConfig{controlPlaneEndpoint{ddnsSearchDomain host type} isTwoNodeCluster ntpServers overlayNetworkConfiguration{cidr enable} sshKeys staticIp} clusterConfig{clusterMetaAttribute controlPlaneHealthCheckTimeout lifecycleConfig{pause} location{countryCode countryName regionCode regionName} timezone updateWorkerPoolsInParallel} clusterTemplate{uid} machinepoolconfig*{cloudConfig{edgeHosts*{hostName hostUid nic{dns gateway ip isDefault macAddr nicName subnet} nicName staticIP twoNodeCandidatePriority}} poolConfig{additionalAnnotations additionalLabels additionalTags isControlPlane labels machinePoolProperties{archType} maxSize minSize name nodeRepaveInterval overrideClusterAPIConfig overrideHealthCheckConfiguration overrideKubeadmConfiguration size skipK8sUpgrade taints*{effect key timeAdded value} updateStrategy{maxSurge maxUnavailable type} useControlPlaneAsWorker}} profiles*{packValues*{manifests*{content name uid} name tag type values} replaceWithProfile uid variables*{name value}}}}',
    'POST /v1/spectroclusters/edge-native/validate':
      '{metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} spec{cloudConfig{controlPlaneEndpoint{ddnsSearchDomain host type} isTwoNodeCluster ntpServers overlayNetworkConfiguration{cidr enable} sshKeys staticIp} clusterConfig{clusterMetaAttribute controlPlaneHealthCheckTimeout lifecycleConfig{pause} location{countryCode countryName regionCode regionName} timezone updateWorkerPoolsInParallel} clusterTemplate{uid} machinepoolconfig*{cloudConfig{edgeHosts*{hostName hostUid nic{dns gateway ip isDefault macAddr nicName subnet} nicName staticIP twoNodeCandidatePriority}} poolConfig{additionalAnnotations additionalLabels additionalTags isControlPlane labels machinePoolProperties{archType} maxSize minSize name nodeRepaveInterval overrideClusterAPIConfig overrideHealthCheckConfiguration overrideKubeadmConfiguration size skipK8sUpgrade taints*{effect key timeAdded value} updateStrategy{maxSurge maxUnavailable type} useControlPlaneAsWorker}} profiles*{packValues*{manifests*{content name uid} name tag type values} replaceWithProfile uid variables*{name value}}}}',
    'PUT /v1/spectroclusters/{uid}/profiles':
      '{profiles*{packValues*{manifests*{content name uid} name tag type values} replaceWithProfile uid variables*{name value}} spcApplySettings{actionType}}',
    'PATCH /v1/spectroclusters/{uid}/variables': '*{profileUid variables*{name value}}',
    'PUT /v1/spectroclusters/{uid}/assets/kubeconfig': '{kubeconfig}',
    'PATCH /v1/spectroclusters/{uid}/packs/status':
      '{packs*{condition{message reason status type} endTime name profileUid startTime type version}}',
    'PUT /v1/spectroclusters/{uid}/heartbeat': '{agentVersion message}',
    'PATCH /v1/spectroclusters/{uid}/status/conditions':
      '*{lastProbeTime lastTransitionTime message reason status type}',
    'POST /v1/events/components/bulk':
      '*{involvedObject{kind name uid} message metadata{annotations creationTimestamp deletionTimestamp labels lastModifiedTimestamp name uid} reason severity source{component host}}',
  },
} as const satisfies Record<string, Record<string, string>>

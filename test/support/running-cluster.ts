const runningPool = { name: 'control-plane-pool', isControlPlane: true, archType: 'amd64' }
/** A reply of `GET /v1/edge-mgmt/cluster/details`. */
export const runningCluster = {
  metadata: {
    id: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44',
    name: 'edge-1',
    labels: { site: 'press-hall' },
    tags: {},
    creationTimestamp: '2026-01-31T09:45:00.000Z',
    lastModifiedTimestamp: '2026-01-31T09:45:00.000Z',
  },
  spec: {
    hostIDs: ['edge-test'],
    nodePools: [
      {
        pool: runningPool,
        hosts: [
          {
            ...{ hostUid: 'edge-test', hostID: 'edge-test', hostName: 'press-3', hostAddress: '192.0.2.7' },
            nic: [
              {
                ...{ ip: '192.0.2.7', subnet: '255.255.255.0', gateway: '192.0.2.1', isDefault: true },
                ...{ macAddr: 'dc:a6:32:00:00:01', nicName: 'eth0', dns: ['192.0.2.1'] },
              },
            ],
          },
        ],
      },
    ],
    ntpServers: [],
    sshKeys: [],
    overlayCIDR: '',
    vip: '',
  },
  status: {
    agentVersion: '1.2.3',
    revision: 1,
    clusterState: 'Running',
    phase: 'Running',
    clusterStateReason: '',
    clusterConditions: [
      {
        type: 'ClusterRunning',
        status: 'True',
        reason: 'Running',
        message: 'the cluster edge-1 is Running',
        lastTransitionTime: '2026-01-31T09:52:41.000Z',
        lastProbeTime: '2026-01-31T09:52:41.000Z',
      },
    ],
    health: { status: 'Healthy' },
    isRebootPending: false,
    k8sVersion: '1.34.4',
    nodePools: [
      {
        pool: runningPool,
        nodes: [
          {
            nodeName: 'press-3',
            nodeState: 'Running',
            ipv4: '192.0.2.7',
            architecture: 'amd64',
            k8sVersion: 'v1.34.4',
            age: '3d4h',
            health: { status: 'Healthy' },
          },
        ],
      },
    ],
    services: [
      {
        name: 'default/kubernetes',
        host: '10.96.0.1',
        ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: '6443' }],
      },
    ],
    ntpServersApplied: false,
    sshKeysApplied: false,
    steps: [
      {
        key: 'kubeadm-init',
        title: 'Set up the control plane',
        state: 'done',
        failures: 0,
        startTimestamp: '2026-01-31T09:46:10.000Z',
        endTimestamp: '2026-01-31T09:47:31.000Z',
      },
    ],
    troubles: [
      {
        pack: 'web',
        reason: 'Crashing',
        message: 'CrashLoopBackOff: it ended with exit code 1',
        namespace: 'shop',
        pod: 'web-6f9c7d4b8c-x2x9z',
        workload: 'Deployment/web',
        container: 'web',
        sinceTimestamp: '2026-01-31T09:50:12Z',
      },
    ],
  },
}

/** A reply of `GET /v1/edge-mgmt/cluster/pods/{namespace}/{name}/logs`. */
export const shownPodLogs = {
  ...{ namespace: 'shop', pod: 'web-6f9c7d4b8c-x2x9z', container: 'web', isPrevious: false },
  lines: ['connecting to the database at db:5432', 'no such host: db'],
}

/** Of a reply of `POST /v1/edge-mgmt/cluster`. */
export const warning = {
  code: 'ClockNotSynchronized',
  severity: 'warning',
  message: 'the clock of this host is not synchronized; set an NTP server',
}

/** Of a reply of `POST /v1/edge-mgmt/cluster?dryRun=true`. */
export const neededImage = {
  ...{ kind: 'image', name: 'registry.k8s.io/kube-apiserver:v1.34.4', origin: 'Kubernetes' },
  ...{ isRequired: true, sizeBytes: 27_066_504, isThere: true },
}
export const plannedStep = { key: 'kubeadm-init', title: 'Set up the control plane', timeoutSeconds: 900 }

/** The reply to a dry run of a change. */
export const triedChange = {
  ...{ isPossible: true, isChanged: true, isHeld: false },
  ...{ problems: [warning], plan: [plannedStep] },
  diff: {
    isEmpty: false,
    packs: [
      {
        ...{ id: 'p1/web', name: 'web', change: 'changed', fromVersion: '1.0.0', toVersion: '1.0.0' },
        ...{ fields: ['values', 'manifests'], manifests: [{ name: 'web.yaml', change: 'changed' }] },
        ...{ charts: [], namespaces: [], isApplied: true, isDrained: false },
      },
    ],
    variables: [
      { profileUid: 'p1', name: 'replicas', isSensitive: false, change: 'changed', from: '2', to: '3' },
    ],
    settings: {},
    effects: [{ target: 'pack', pack: 'p1/web', restarts: [], message: 'web is applied again' }],
  },
}

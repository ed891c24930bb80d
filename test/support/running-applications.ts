import { applicationsOf } from '../../src/cluster/packs/applications.ts'
import { newPack } from '../../src/cluster/packs/pack-store.ts'
import { runningHost, wantedCluster, wantedPack } from './cluster-parts.ts'

const web = {
  ...wantedPack('web'),
  charts: [
    ...[
      {
        name: 'web',
        version: '1.2.0',
        release: 'web',
        namespace: 'shop',
        file: 'a.tgz',
        valuesFile: 'a.yaml',
      },
    ],
  ],
  images: ['docker.io/library/busybox:1'],
}
const wanted = wantedCluster({ packs: [web] })
const pack = (name: string, version: string, layer: string, values: string) => ({
  ...{ name, version, layer, values, logo: '', images: [] },
})

/** A reply of `GET /v1/edge-mgmt/cluster/applications`. */
export const runningApplications = applicationsOf({
  desired: {
    ...wanted,
    packTypes: { 'p1/edge-native-byoi': 'spectro', 'p1/edge-k8s': 'spectro', 'p1/web': 'spectro' },
  },
  given: [],
  profiles: [
    {
      ...{ profileUid: 'p1', profileName: 'factory', profileVersion: '1.0.0', profileType: 'cluster' },
      ...{ profileDescription: 'Everything of a press', profileTags: '', variables: [] },
      packs: [
        pack('edge-native-byoi', '2.0.0', 'os', ''),
        pack('edge-k8s', '1.34.4', 'k8s', ''),
        pack('web', '1.0.0', 'addon', 'charts:\n  web:\n    replicas: 2\n'),
      ],
    },
  ],
  observed: runningHost(wanted),
  hide: (text) => text,
  records: [
    {
      ...newPack(web.id),
      ...{ appliedDigest: web.digest, partDigest: web.digest, availableDigest: web.digest },
      doneSteps: ['pack p1/web namespaces', 'pack p1/web chart shop/web', 'pack p1/web available'],
      startedAt: Date.parse('2026-01-31T09:48:12Z'),
      endedAt: Date.parse('2026-01-31T09:52:40Z'),
    },
  ],
  steps: [],
})

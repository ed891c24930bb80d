import { expect, it } from 'vitest'
import { createKubeadmEngine, type KubeadmEngineOptions } from '../../../../src/cluster/engine/kubeadm.ts'
import type { FoundProgram, ProgramReference } from '../../../../src/content/store/find.ts'
import { wantedCluster } from '../../../support/cluster-parts.ts'

it('the engine needs its programs of the version of Kubernetes, and the newest tools, as far as the content has them', async () => {
  const carried = ['kubeadm v1.34.4', 'kubelet 1.34.4', 'kubectl 1.33.0', 'helm 3.19.0', 'helm 3.18.0']
  const findProgram = async ({ name, version }: ProgramReference) =>
    carried.includes(`${name} ${version}`)
      ? ({ entryDigest: `sha256:${name}-${version}`, isWhole: true } as FoundProgram)
      : undefined
  const { contentOf } = createKubeadmEngine({
    ...{ stateDirectory: '/nowhere', settings: { programs: {} }, architecture: 'amd64' },
    content: {
      findProgram,
      programVersions: async (name: string) => (name === 'helm' ? ['3.19.0', '3.18.0'] : []),
    },
  } as unknown as KubeadmEngineOptions)
  expect(await contentOf(wantedCluster())).toEqual([
    'sha256:kubeadm-v1.34.4',
    'sha256:kubelet-1.34.4',
    'sha256:helm-3.19.0',
  ])
})

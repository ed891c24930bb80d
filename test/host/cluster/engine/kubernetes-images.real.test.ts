import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { kubernetesImages } from '../../../../src/cluster/needs/kubernetes-images.ts'
import { isKitMissing, kit, kitVersions } from '../../../support/kubernetes-kit.ts'

describe.skipIf(isKitMissing())('the images of Kubernetes without its kubeadm', () => {
  it.each(kitVersions)('are those that kubeadm %s lists', async (version) => {
    const found = await kit(version)
    const listed = execFileSync(join(found?.programs ?? '', 'kubeadm'), [
      ...['config', 'images', 'list', '--kubernetes-version', `v${version}`],
    ])
    expect(kubernetesImages({ version, config: '' })).toEqual(
      listed
        .toString()
        .trim()
        .split('\n')
        .map((image) => ({ image, isTagKnown: true })),
    )
  })
})

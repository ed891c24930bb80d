import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isKitMissing, kit } from '../../support/kubernetes-kit.ts'
import { chief } from '../../e2e/cluster/cluster-host.ts'
import { bootForOperator, uploadPathOf, type Operator } from '../../e2e/cluster/journey.ts'
import type { PlantPack } from '../../e2e/cluster/plant-definition.ts'

// Up to the dry run it is in the short tests, with each interruption before each command.
let operator: Operator
beforeAll(async () => {
  if (isKitMissing()) return
  operator = await bootForOperator((await kit())!)
})
afterAll(() => (operator as Operator | undefined)?.unplug())

/** The pack `greeting` with so many replicas. */
const greeted = (replicas: number) => (usual: readonly PlantPack[]) =>
  usual.map((pack) =>
    pack.name === 'greeting'
      ? { ...pack, values: pack.values.replace('replicas: 1', `replicas: ${replicas}`) }
      : pack,
  )
const replicas = async () =>
  (
    await operator.host.output([
      '/var/lib/edgehostd/cluster/programs/kubectl/current/kubectl',
      ...['--kubeconfig=/etc/kubernetes/admin.conf', '-n', 'greeting', 'get', 'deployment', 'hello'],
      ...['-o', 'jsonpath={.spec.replicas}'],
    ])
  ).trim()
const details = (slot: string) => ['api', 'get', `/v1/edge-mgmt/clusters/archive/${slot}/details`]

describe.skipIf(isKitMissing())(
  'the journey of the README, with a restart or a power cut before each command',
  () => {
    it('content and definition become a cluster', { timeout: 900_000 }, async () => {
      const { bundle } = await operator.builds('shop', { isWhole: true })
      await operator.types('power cut', 'login', chief)
      await operator.types('restart', 'content', 'upload', bundle)
      const file = await operator.describes(
        uploadPathOf(await operator.types('power cut', ...details('embedded'))),
      )
      for (const before of ['restart', 'power cut'] as const)
        expect(await operator.types(before, 'cluster', 'create', file, '--dry-run')).toContain(
          'the cluster can be created',
        )
      await operator.types('restart', 'cluster', 'create', file, '--wait')
      expect(await operator.types('power cut', 'cluster', 'get')).toMatch(/plant[^]*Running/)
      expect(await operator.types('restart', 'cluster', 'kubeconfig')).toContain('client-key-data')
    })

    it('a definition inside a later bundle updates it', { timeout: 900_000 }, async () => {
      const definition = { version: '1.1.0', packs: greeted(2) }
      const { bundle } = await operator.builds('shop-1.1', { definition, isWhole: false })
      await operator.types('power cut', 'content', 'upload', bundle)
      for (const before of ['restart', 'power cut'] as const)
        expect(await operator.types(before, 'cluster', 'diff', '--update')).toMatch(/greeting/)
      await operator.types('restart', 'cluster', 'apply', '--update', '--yes')
      expect(await replicas()).toBe('2')
      expect(await operator.types('power cut', 'cluster', 'revisions')).toMatch(/^ *2 /m)
    })

    it('a file updates it, and it is rolled back and deleted', { timeout: 900_000 }, async () => {
      const { definition } = await operator.builds('shop-1.2', {
        ...{ definition: { version: '1.2.0', packs: greeted(3) }, isWhole: false },
      })
      await operator.types('restart', 'cluster', 'diff', '--definition', definition, '--yes')
      await operator.types('power cut', 'cluster', 'apply', '--yes')
      expect(await replicas()).toBe('3')
      await operator.types('power cut', 'cluster', 'rollback', '--yes')
      expect(await replicas()).toBe('2')
      expect(await operator.types('restart', 'status')).toMatch(/plant/)
      await operator.types('power cut', 'cluster', 'delete', '--yes', '--wait')
      expect((await operator.tries('restart', 'cluster', 'get')).exitCode).not.toBe(0)
    })
  },
)

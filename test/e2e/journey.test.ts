import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isKitMissing, kit } from '../support/kubernetes-kit.ts'
import { chief, password } from './cluster/cluster-host.ts'
import { bootForOperator, uploadPathOf, type Interruption, type Operator } from './cluster/journey.ts'

// From the workstation to the dry run; the cluster itself is in the long tests.
const detailsOf = (slot: string) => `/v1/edge-mgmt/clusters/archive/${slot}/details`

describe.skipIf(isKitMissing()).each<Interruption>(['restart', 'power cut'])(
  'the commands of the README, with a %s before each',
  (before) => {
    let operator: Operator
    beforeAll(async () => {
      operator = await bootForOperator((await kit())!)
    })
    afterAll(() => operator.unplug())

    // The bundle has not all that a cluster needs, which the host says once it has read the definition.
    const refusesFor = async (uploadPath: string) => {
      const file = await operator.describes(uploadPath)
      const { exitCode, stdout, stderr } = await operator.tries(
        before,
        ...['cluster', 'create', file, '--dry-run'],
      )
      expect([exitCode, stderr, stdout]).toEqual([
        ...[1, ''],
        expect.stringMatching(/the cluster cannot be created[^]*docker\.io\/library\/busybox:1/),
      ])
    }

    it('a definition that came inside a content bundle can be used by each later command', async () => {
      const { bundle, definition } = await operator.builds('shop', { isWhole: false })
      await operator.types(before, 'login', chief)
      await operator.types(before, 'content', 'upload', bundle)
      expect(await operator.types(before, 'content', 'list')).toMatch(/shop-bundle/)
      await refusesFor(uploadPathOf(await operator.types(before, 'api', 'get', detailsOf('embedded'))))
      expect(await operator.types(before, 'status')).toMatch(/State: running/)

      // The other way into the host, whose slot outlives the same.
      const { token } = await operator.host.openSession(chief, password)
      const path = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
      const form = [`uploadFile=@${definition}`]
      expect(await operator.host.http('POST', path, { token, form })).toMatchObject({ status: 201 })
      await refusesFor(uploadPathOf(await operator.types(before, 'api', 'get', detailsOf('overridden'))))
    })
  },
)

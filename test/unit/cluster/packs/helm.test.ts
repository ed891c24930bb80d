import { describe, expect, it } from 'vitest'
import { cureOf, type Cure, readResources, reasonOf, waitingOf } from '../../../../src/cluster/packs/helm.ts'
import { descriptionOf, wayTo, type Way } from '../../../../src/cluster/packs/releases.ts'

describe('the cure of a release', () => {
  const uninstall: Cure = { kind: 'uninstall' }
  const rollback = (revision: number): Cure => ({ kind: 'rollback', revision })
  const table: readonly [string, Cure | undefined][] = [
    ['', undefined],
    ['deployed', undefined],
    ['failed', undefined],
    ['superseded deployed', undefined],
    ['deployed failed', undefined],
    ['pending-install', uninstall],
    ['failed uninstalling', uninstall],
    ['deployed pending-upgrade', rollback(1)],
    ['superseded deployed failed pending-upgrade', rollback(2)],
    ['deployed failed pending-rollback', rollback(1)],
    // Cut off between the last two writes of an upgrade that has succeeded.
    ['superseded superseded pending-upgrade', rollback(2)],
    // Nothing was ever deployed.
    ['failed pending-upgrade', rollback(1)],
    ['pending-upgrade', uninstall],
  ]
  it.each(table)('of the revisions "%s" is %j', (statuses, cure) => {
    const history = statuses.split(' ').map((status, index) => ({ revision: index + 1, status }))
    expect(cureOf(history)).toEqual(cure)
    expect(cureOf(history.toReversed())).toEqual(cure)
  })
})

describe('the way of a release to a chart with its values', () => {
  const upgrade: Way = { kind: 'upgrade' }
  const rollback = (revision: number): Way => ({ kind: 'rollback', revision })
  const a = descriptionOf('a')
  const b = descriptionOf('b')
  const table: readonly [string, readonly (readonly [string, string])[], Way][] = [
    ['is an upgrade where there is no release', [], upgrade],
    [
      'is none where it was deployed so last',
      [
        ['superseded', b],
        ['deployed', a],
      ],
      { kind: 'keep' },
    ],
    ['is an upgrade where it never was so', [['deployed', b]], upgrade],
    [
      'is a rollback to the last revision that was so',
      [
        ['superseded', a],
        ['superseded', a],
        ['deployed', b],
      ],
      rollback(2),
    ],
    [
      'is a rollback where the upgrade from it failed',
      [
        ['deployed', a],
        ['failed', 'Upgrade "web" failed'],
      ],
      rollback(1),
    ],
    [
      'is none after a rollback to it',
      [
        ['superseded', a],
        ['superseded', b],
        ['deployed', 'Rollback to 1'],
      ],
      { kind: 'keep' },
    ],
    ['is an upgrade where that installation failed', [['failed', a]], upgrade],
    ['is an upgrade where the target of a rollback is unknown', [['deployed', 'Rollback to 7']], upgrade],
    ['is an upgrade where another program installed it', [['deployed', 'Install complete']], upgrade],
  ]
  it.each(table)('%s', (_title, revisions, way) => {
    const history = revisions.map(([status, description], index) => ({
      revision: index + 1,
      status,
      description,
    }))
    expect(wayTo('a', history)).toEqual(way)
    expect(wayTo('a', history.toReversed())).toEqual(way)
  })
})

describe('the output of helm', () => {
  // helm 3.20.2 with --debug.
  const ready =
    'ready.go:303: 2026-11-23 11:18:31.765146494 +0000 UTC m=+2.189066634 [debug] Deployment is not ready: default/web. 0 out of 1 expected pods are ready'
  const failed = [
    'client.go:144: 2026-11-23 11:18:29.753991269 +0000 UTC m=+0.177911420 [debug] creating 2 resource(s)',
    ready,
    'wait.go:85: 2026-11-23 11:18:37.762670891 +0000 UTC m=+8.186591031 [debug] wait for resources failed after 8s: context deadline exceeded',
    'Error: context deadline exceeded',
    'helm.go:92: 2026-11-23 11:18:37.76841462 +0000 UTC m=+8.192334760 [debug] context deadline exceeded',
  ]

  it('says what helm waits for', () => {
    expect(failed.map(waitingOf).filter((line) => line !== undefined)).toEqual([
      'Deployment is not ready: default/web. 0 out of 1 expected pods are ready',
    ])
  })
  it('says why helm failed, in one line without what is for debugging', () => {
    expect(reasonOf(failed)).toBe('context deadline exceeded')
    expect(reasonOf(['Error: values do not meet the schema:', 'web:', '- (root): a is required', ''])).toBe(
      'values do not meet the schema:; web:; - (root): a is required',
    )
    expect(reasonOf(['standard error without that word'])).toBe('standard error without that word')
    expect(reasonOf([])).toBe('it gave no reason')
  })
  it('names the objects of a release without the pods of its workloads', () => {
    const web = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'shop', uid: '1' },
    }
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'web' },
    }
    const resources = {
      'v1/Deployment': [web],
      'v1/ClusterRole': [role],
      'v1/Pod(related)': [{ kind: 'PodList', items: [] }],
    }
    expect(readResources(JSON.stringify({ info: { resources } }))).toEqual([
      { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', namespace: 'shop' },
      { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'web' },
    ])
    // A chart without objects.
    expect(readResources('{"info":{}}')).toEqual([])
  })
})

import { expect, it } from 'vitest'
import type { RouteTable } from '../../../src/api/route-table.ts'
import { describeChange, hidden } from '../../../src/base/described-change.ts'
import { createTestEdge } from '../../support/test-edge.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

// Changing routes without a record, and why. All others have one, and declare what of their resource it compares, or why it has nothing more to say.
const unrecorded: Readonly<Record<string, string>> = {
  'PATCH /v1/edge-mgmt/content/uploads/:uid/blobs/:digest':
    'nothing changes before the publication, which is recorded',
  'POST /v1/edge-mgmt/cluster/profiles/variables/validate': 'only checks',
  'POST /v1/spectroclusters/edge-native/validate': 'only checks',
  'PATCH /v1/edgehosts/:uid/health': 'a report of a host, each minute',
  'PUT /v1/edgehosts/:uid': 'a report of a host',
  'PATCH /v1/edgehosts/:uid/packs/status': 'a report of a host',
  'PUT /v1/spectroclusters/:uid/heartbeat': 'a report of a host, each minute',
  'PATCH /v1/spectroclusters/:uid/status/conditions': 'a report of a host',
  'PATCH /v1/spectroclusters/:uid/packs/status': 'a report of a host',
  'POST /v1/events/components/bulk': 'events are a trail of their own',
}

/** Changing routes, by whether their records say what changed. */
function read({ routes }: RouteTable) {
  const found = new Map<string, 'says' | 'why not' | 'no record' | 'forgotten'>()
  for (const { method, url, audit } of routes) {
    if (!['POST', 'PUT', 'PATCH', 'DELETE'].includes(method)) continue
    const { changes = '' } = audit === undefined || audit === false ? {} : audit
    const says = typeof changes === 'function' ? 'says' : changes === '' ? 'forgotten' : 'why not'
    found.set(`${method} ${url}`, audit === false ? 'no record' : says)
  }
  return found
}

it('the record of each changing route of both programs says what changed, or the route says why not', async () => {
  const [edge, platform] = [await createTestEdge(), await createTestPlatform()]
  const all = new Map([...read(edge.routes), ...read(platform.rooms.api.table)])
  await Promise.all([edge.stop(), platform.close()])
  const which = (what: string) => [...all].filter(([, each]) => each === what).map(([route]) => route)
  expect(which('forgotten')).toEqual([])
  expect(which('no record').sort()).toEqual(Object.keys(unrecorded).sort())
  // What has values that callers set is compared.
  expect(which('why not').sort()).toEqual([
    'DELETE /v1/edge-mgmt/content/bundles/:uid',
    'DELETE /v1/edge-mgmt/content/uploads/:uid',
    'DELETE /v1/edge-mgmt/edgehosts/current/actions/:uid',
    'DELETE /v1/edge-mgmt/network/bonds/:name',
    'DELETE /v1/edge-mgmt/network/bridges/:name',
    'DELETE /v1/edge-mgmt/network/vlans/:name',
    'DELETE /v1/users/sessions/:uid',
    'PATCH /v1/auth/password/:passwordToken/activate',
    'PATCH /v1/users/current',
    'PATCH /v1/users/password/change',
    'POST /v1/auth/authenticate',
    'POST /v1/auth/services/edge/login',
    'POST /v1/auth/user/password/reset',
    'POST /v1/clouds/vendor/account/validate',
    'POST /v1/edge-mgmt/cluster/renew-certificates',
    'POST /v1/edge-mgmt/content/uploads',
    'POST /v1/edge-mgmt/content/uploads/:uid/actions/publish',
    'POST /v1/edge-mgmt/edgehosts/current/actions/reboot',
    'POST /v1/edge-mgmt/edgehosts/current/actions/reset',
    'POST /v1/edge-mgmt/edgehosts/current/actions/shutdown',
    'POST /v1/edge-mgmt/edgehosts/current/actions/upload-content',
    'POST /v1/edge-mgmt/edgehosts/current/generate-logs',
    'POST /v1/edge-mgmt/edgehosts/current/tickets',
    'POST /v1/edge-mgmt/edgehosts/current/userdata',
    'POST /v1/edge-mgmt/network/bonds/:name',
    'POST /v1/edge-mgmt/network/bridges/:name',
    'POST /v1/edge-mgmt/network/changes/:uid/actions/confirm',
    'POST /v1/edge-mgmt/network/changes/:uid/actions/revert',
    'POST /v1/edge-mgmt/network/vlans/:name',
    'POST /v1/users/:uid/activation',
    'POST /v1/users/auth/tokens/revoke',
    'POST /v1/users/default/login',
    'POST /v1/users/default/logout',
    'POST /v1/users/default/password/reset',
    'POST /v1/users/default/token/renewal',
    'PUT /v1/edge-mgmt/edgehosts/current/configurations',
    'PUT /v1/edge-mgmt/edgehosts/current/hostname',
    'PUT /v1/edge-mgmt/edgehosts/current/time',
    'PUT /v1/edge-mgmt/edgehosts/current/userdata',
    'PUT /v1/edge-mgmt/network/bonds/:name',
    'PUT /v1/edge-mgmt/network/bridges/:name',
    'PUT /v1/edge-mgmt/network/interfaces/:name/config',
    'PUT /v1/edge-mgmt/network/management-interface',
    'PUT /v1/edge-mgmt/network/vlans/:name',
  ])
})

it('a change says each value that differs by its path, entries of lists by their names', () => {
  const before = {
    metadata: { name: 'shop', labels: { hall: '3' }, annotations: { note: 'abc' } },
    spec: { roles: ['viewer'], variables: [{ name: 'replicas', value: '1' }], old: true },
  }
  const after = {
    metadata: { name: 'shop', labels: {}, annotations: { note: 'another' }, lastModifiedTimestamp: 'now' },
    spec: { roles: ['admin', 'viewer'], variables: [{ name: 'replicas', value: '2' }] },
  }
  expect(describeChange(before, after)).toBe(
    'annotations.note: 3 characters -> 7 characters; labels.hall: 3 -> none; old: true -> none; roles: viewer -> admin, viewer; variables.replicas.value: 1 -> 2',
  )
  expect(describeChange(before, before)).toBe('')
})

it('a sensitive value is compared and never said, also in a list that has no names', () => {
  const of = (value: string) => ({ named: [{ name: 'password', value: hidden(value) }] })
  expect(describeChange(of('swordfish'), of('swordfish'))).toBe('')
  expect(describeChange(of('swordfish'), of('marlin'))).toBe(
    'named.password.value: ******** -> another ********',
  )
  expect(describeChange({}, of('marlin'))).toBe('named.password.value: none -> ********')
  expect(describeChange({ list: [] }, { list: [{ value: hidden('marlin') }] })).toBe(
    'list: none -> [{"value":"********"}]',
  )
})

it('long values that differ after their beginning are not said as equal, and a record has room for how many more there are', () => {
  const key = (end: string) => ({ sshKeys: [`ssh-rsa ${'A'.repeat(300)}${end}`] })
  expect(describeChange(key('one'), key('two'))).toMatch(/^sshKeys: …A+one -> …A+two$/)
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`label${index}`, 'x']))
  const said = describeChange({}, many)
  expect(said.length).toBeLessThan(900)
  expect(said).toMatch(/; and 4\d\d more$/)
})

it.each([
  [
    'another order of texts',
    { servers: ['one', 'two'] },
    { servers: ['two', 'one'] },
    'servers: another order',
  ],
  [
    'another order of named entries',
    { packs: [{ name: 'one' }, { name: 'two' }] },
    { packs: [{ name: 'two' }, { name: 'one' }] },
    'packs: another order',
  ],
  [
    'an empty label',
    { labels: { hall: 'x' } },
    { labels: { hall: 'x', dry: '' } },
    'labels.dry: not set -> ""',
  ],
  ['a label none', { labels: {} }, { labels: { hall: 'none' } }, 'labels.hall: not set -> "none"'],
  ['a label named kind', { labels: {} }, { labels: { kind: 'press' } }, 'labels.kind: none -> press'],
  [
    'a variable named uid',
    { variables: [{ name: 'uid', value: '1' }] },
    { variables: [{ name: 'uid', value: '2' }] },
    'variables.uid.value: 1 -> 2',
  ],
  ['another type', { value: 1 }, { value: '1' }, 'value: 1 -> "1"'],
  [
    'another thing of the same name',
    { profiles: [{ name: 'web', uid: 'a' }] },
    { profiles: [{ name: 'web', uid: 'b' }] },
    'profiles.web.uid: a -> b',
  ],
  [
    'an annotation of the same length',
    { annotations: { note: 'abc' } },
    { annotations: { note: 'abd' } },
    'annotations.note: another text',
  ],
  [
    'a sensitive value in a list that has no names',
    { list: [{ value: hidden('marlin') }] },
    { list: [{ value: hidden('tarpon') }] },
    'list: [{"value":"********"}] -> another [{"value":"********"}]',
  ],
])('%s is a change too', (_what, before, after, expected) => {
  expect(describeChange(before, after)).toBe(expected)
  expect(describeChange(after, after)).toBe('')
})

it('what is made or deleted says nothing of what is empty, and no uid', () => {
  const view = { uid: 'a', name: 'web', tags: [], note: '', packs: [{ name: 'nginx', uid: 'b', tag: '1' }] }
  expect(describeChange({}, view)).toBe('name: none -> web; packs.nginx.tag: none -> 1')
  expect(describeChange(view, {})).toBe('name: web -> none; packs.nginx.tag: 1 -> none')
})

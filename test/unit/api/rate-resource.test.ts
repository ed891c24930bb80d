import { expect, it } from 'vitest'
import { parseResourceRate, resourceOf } from '../../../src/api/rate/rows.ts'

it.each([
  ['/v1/users/default/login', 'users'],
  ['/v1/users', 'users'],
  ['/v1/users?limit=1', 'users'],
  ['/v1/users/sessions/:uid', 'users'],
  ['/v1/edge-mgmt/edgehosts/current', 'edgehosts'],
  ['/v1/edge-mgmt/edgehosts/current/audits?x=/v1/users', 'edgehosts'],
  ['/v1/edge-mgmt/cluster', 'cluster'],
  ['/v1/edge-mgmt/clusters/a', 'clusters'],
  ['/v1/edge-mgmt', 'other'],
  ['/v1/edge-mgmt/', 'other'],
  ['/v1/', 'other'],
  ['/', 'other'],
  ['', 'other'],
  ['//v1/users', 'other'],
  ['/openapi.json', 'other'],
  ['/v2/users', 'other'],
])('the path %s counts for the resource %s', (url, resource) => {
  expect(resourceOf(url)).toBe(resource)
})

it('the rate of a resource is parsed', () => {
  expect(parseResourceRate('clusters=50/5')).toEqual(['clusters', { requestsPerSecond: 50, burst: 5 }])
})

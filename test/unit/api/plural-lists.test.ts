import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ApiDocument, Schema } from '../../../build/openapi.ts'

// Plural resources whose published shape has no listmeta.
const whole = [
  '/v1/edge-mgmt/edgehosts/current/error-logs',
  '/v1/edge-mgmt/clusters/current/machinepools',
  '/v1/edge-mgmt/cluster/revisions',
  '/v1/edge-mgmt/edgehosts/current/attention',
  '/v1/edge-mgmt/edgehosts/current/actions',
  '/v1/edge-mgmt/network/bonds',
  '/v1/edge-mgmt/network/changes',
  '/v1/edge-mgmt/network/bridges',
  '/v1/edge-mgmt/network/vlans',
]

describe.each(['openapi.json', 'platform-openapi.json'])('the lists of plural resources of %s', (name) => {
  const { paths, components } = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8'),
  ) as ApiDocument
  const resolved = (schema: Schema | undefined): Schema | undefined =>
    schema?.$ref === undefined ? schema : (components.schemas?.[schema.$ref.split('/').at(-1)!] as Schema)
  const lists = Object.entries(paths).flatMap(([path, { get }]) => {
    const reply = resolved(get?.responses['200']?.content?.['application/json']?.schema)
    const isList = ['items', 'edgeHosts'].some(
      (field) => resolved(reply?.properties?.[field])?.type === 'array',
    )
    return get && isList ? { path, get, fields: reply?.properties ?? {} } : []
  })

  it('have listmeta and at most 50 items, unless their published shape has none, which their document says', () => {
    expect(lists.length).toBeGreaterThan(6)
    for (const { path, get, fields } of lists) {
      const limit = get.parameters?.find((parameter) => parameter.name === 'limit')
      const most = (limit?.schema as { readonly maximum?: number } | undefined)?.maximum
      const isPaged = !whole.includes(path)
      expect([path, 'listmeta' in fields, most]).toEqual([path, isPaged, isPaged ? 50 : undefined])
      if (!isPaged) expect(get.description).toContain('without listmeta')
    }
  })
})

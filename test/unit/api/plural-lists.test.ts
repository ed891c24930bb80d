import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Schema>>
}
interface Operation {
  readonly description?: string
  readonly parameters?: readonly { readonly name?: string; readonly schema?: Schema }[]
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { schema: Schema }>> }>
  >
}
interface Document {
  readonly paths: Readonly<Record<string, { readonly get?: Operation }>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

// Plural resources whose published shape has no listmeta.
const whole = [
  '/v1/edge-mgmt/edgehosts/current/error-logs',
  '/v1/edge-mgmt/clusters/current/machinepools',
  '/v1/edge-mgmt/cluster/revisions',
]

describe.each(['openapi.json', 'platform-openapi.json'])('the lists of plural resources of %s', (name) => {
  const { paths, components }: Document = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8'),
  ) as Document
  const resolved = (schema: Schema | undefined): Schema | undefined =>
    schema?.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1)!]
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
      const most = get.parameters?.find((parameter) => parameter.name === 'limit')?.schema?.maximum
      const isPaged = !whole.includes(path)
      expect([path, 'listmeta' in fields, most]).toEqual([path, isPaged, isPaged ? 50 : undefined])
      if (!isPaged) expect(get.description).toContain('without listmeta')
    }
  })
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { TSchema } from 'typebox'
import { createBodyCheck, createValidatorCompiler, describeProblem } from '../../../src/api/compilers.ts'
import type { Refusal } from '../../../src/base/field-stance.ts'
import { ClusterConfiguration } from '../../../src/cluster/schemas.ts'
import { EdgeNativeClusterEntity } from '../../../src/platform/clusters/schemas.ts'
import { publishedFields } from '../../support/published-fields.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly 'x-ignored'?: string
  readonly 'x-refused'?: Refusal
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}
interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

const documents = { host: 'openapi.json', platform: 'platform-openapi.json' } as const
const read = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8')) as Document

/** The paths of the leaves of a shape, for example `spec.users[].roles`. */
function pathsOf(shape: string): readonly string[] {
  const paths: string[] = []
  const at: string[] = []
  let last = ''
  for (const [token] of shape.matchAll(/\*?\{|\}|[\w-]+/g))
    if (token.endsWith('{')) {
      at.push(last + (token.startsWith('*') ? '[]' : ''))
      last = ''
    } else {
      if (last !== '') paths.push([...at, last].filter(Boolean).join('.'))
      last = ''
      if (token === '}') at.pop()
      else last = token
    }
  return paths
}

/** What becomes of a field: that of the nearest schema on its path that says so. */
function stanceOf({ components }: Document, root: Schema, path: string): string {
  let schema: Schema | undefined = root
  for (const part of ['', ...path.split('.')]) {
    const name = part.replace('[]', '')
    if (name !== '') schema = resolved(schema)?.properties?.[name]
    schema = resolved(schema)
    if (schema?.['x-ignored'] !== undefined) return `ignored: ${schema['x-ignored']}`
    if (schema?.['x-refused']) return `refused: ${schema['x-refused'].why}`
    if (part.endsWith('[]')) schema = schema?.items
    if (!schema) return 'missing'
    if (isAny(resolved(schema))) return 'honoured'
  }
  return 'honoured'

  function resolved(each: Schema | undefined): Schema | undefined {
    if (each?.$ref !== undefined) return resolved(components.schemas[each.$ref.split('/').at(-1)!])
    return each?.anyOf?.map(resolved).find((one) => one?.properties) ?? each
  }
}

/** A schema that takes anything, or a map: what is in it has names of the client. */
const isAny = (schema: Schema | undefined) =>
  schema !== undefined &&
  schema.properties === undefined &&
  schema.items === undefined &&
  schema.type !== 'string'

function bodyOf(document: Document, operation: string): Schema {
  const [method = '', path = ''] = operation.split(' ')
  const body = document.paths[path]?.[method.toLowerCase()]?.requestBody
  return body?.content['application/json']?.schema ?? { properties: {} }
}

describe.each(Object.entries(documents))('the published fields of requests of the %s', (api, file) => {
  const document = read(file)
  const operations = Object.entries(publishedFields[api as keyof typeof documents])

  it('are honoured, refused or ignored, each by a declaration', () => {
    const missing = operations.flatMap(([operation, shape]) =>
      pathsOf(shape)
        .filter((path) => stanceOf(document, bodyOf(document, operation), path) === 'missing')
        .map((path) => `${operation} ${path}`),
    )
    expect(missing).toEqual([])
  })
})

describe('a field that is refused', () => {
  const check = (schema: TSchema, body: unknown) => {
    const validate = createValidatorCompiler()({ schema, method: '', url: '', httpPart: 'body' }) as ((
      data: unknown,
    ) => boolean) & { errors?: readonly Parameters<typeof describeProblem>[0][] | null }
    return validate(body) ? undefined : describeProblem(validate.errors![0]!, 'body').field
  }
  const cluster = (spec: object) => ({ metadata: { name: 'a' }, spec })
  const pool = (poolConfig: object) => cluster({ machinepoolconfig: [{ poolConfig }] })

  it.each<[object, string | undefined]>([
    [cluster({ clusterConfig: { timezone: 'UTC' } }), 'spec.clusterConfig.timezone'],
    [
      cluster({ clusterConfig: { lifecycleConfig: { pause: true } } }),
      'spec.clusterConfig.lifecycleConfig.pause',
    ],
    [
      cluster({ clusterConfig: { resources: { namespaces: [{ uid: 'x' }] } } }),
      'spec.clusterConfig.resources.namespaces[0].uid',
    ],
    [cluster({ clusterTemplate: { uid: 'x' } }), 'spec.clusterTemplate.uid'],
    [cluster({ policies: { scanPolicy: { a: 1 } } }), 'spec.policies.scanPolicy.a'],
    [
      pool({ overrideKubeadmConfiguration: 'a: b' }),
      'spec.machinepoolconfig[0].poolConfig.overrideKubeadmConfiguration',
    ],
    [
      pool({ updateStrategy: { maxSurge: '1' } }),
      'spec.machinepoolconfig[0].poolConfig.updateStrategy.maxSurge',
    ],
    [pool({ skipK8sUpgrade: 'enabled' }), 'spec.machinepoolconfig[0].poolConfig.skipK8sUpgrade'],
    [
      pool({ additionalAnnotations: { 'a/b': 'c' } }),
      'spec.machinepoolconfig[0].poolConfig.additionalAnnotations.a/b',
    ],
    [
      pool({
        ...{ minSize: 1, maxSize: 0, skipK8sUpgrade: 'disabled', nodeRepaveInterval: 0 },
        ...{
          updateStrategy: { type: 'RollingUpdateScaleOut', maxSurge: '' },
          overrideKubeadmConfiguration: '',
        },
      }),
      undefined,
    ],
    [
      cluster({
        ...{ clusterTemplate: { uid: '' }, policies: {} },
        clusterConfig: {
          timezone: '',
          lifecycleConfig: { pause: false },
          resources: { namespaces: [], rbacs: [] },
        },
      }),
      undefined,
    ],
  ])('%j: %s', (body, field) => {
    expect(check(EdgeNativeClusterEntity, body)).toBe(field)
  })

  it('is refused of hosts too, and not where another program accepted it before', () => {
    const machinePoolConfig = [{ hosts: [{ caCert: 'PEM' }] }]
    const body = { spec: { cloudConfig: { spec: { machinePoolConfig } } } }
    expect(check(ClusterConfiguration, body)).toBe(
      'spec.cloudConfig.spec.machinePoolConfig[0].hosts[0].caCert',
    )
    expect(createBodyCheck(ClusterConfiguration)(body)).toBeUndefined()
  })
})

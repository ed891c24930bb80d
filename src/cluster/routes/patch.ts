import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { createDocumentCheck } from '../../api/compilers.ts'
import { acceptJson } from '../../api/json-body.ts'
import { misspeltIn } from '../../api/spelling.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Change } from '../change/change.ts'
import type { Write } from '../change/draft.ts'
import { applyJsonPatch } from '../change/json-patch.ts'
import { applyConfigurationPart, applyMergePatch } from '../change/merge-patch.ts'
import { ClusterPatch, HttpPatch } from '../change/schemas.ts'
import type { Reading } from '../reading.ts'
import { ClusterConfiguration } from '../schemas.ts'
import {
  answerChange,
  changeConfigOf,
  changeSchema,
  lenientBodies,
  named,
  verbsOf,
  writerOf,
} from './answer-change.ts'

export interface PatchRoutesOptions {
  readonly change: Change
  readonly reading: Pick<Reading, 'compared'>
}

const mergePatch = 'application/merge-patch+json'
const jsonPatch = 'application/json-patch+json'

/** Bodies by their media type. */
const bodies = (json: typeof ClusterConfiguration | typeof ClusterPatch) => ({
  content: {
    'application/json': { schema: json },
    [mergePatch]: {
      schema: Type.Object(
        {},
        { description: 'RFC 7396: members of a ClusterConfiguration; null takes one away.' },
      ),
    },
    [jsonPatch]: { schema: Type.Array(HttpPatch, { description: 'RFC 6902.' }) },
  },
})

/** Changes of a part of the configuration. */
export const patchRoutes: FastifyPluginAsyncTypebox<PatchRoutesOptions> = async (
  app,
  { change, reading },
) => {
  acceptJson(app, [mergePatch, jsonPatch])
  // A part is judged by what it makes, as the other patches: null and what it leaves out are no faults of it.
  app.setValidatorCompiler((route) =>
    route.httpPart === 'body' && route.schema === ClusterConfiguration ? () => true : lenientBodies(route),
  )
  const path = '/v1/edge-mgmt/cluster'
  const changeConfig = changeConfigOf(reading)
  const media = `By Content-Type: ${mergePatch} (RFC 7396) or ${jsonPatch} (RFC 6902), both of what GET gives.`
  const patched = (request: FastifyRequest, json: Patch): Write => ({
    ...writerOf(request),
    async edit(shown) {
      requireSpelling(request.body)
      return validated(patchOf(request, json)(shown, request.body))
    },
  })

  app.patch(
    path,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'patchCluster',
        summary: 'Change a part of the configuration of the cluster',
        description: `${media} application/json is a part of a ClusterConfiguration, which is merged: entries of profileVariables are merged by their name and profileUid, pools by their name, hosts by their hostUid, and those that are not named stay; other lists are replaced, and null takes a member away. {"spec":{"profileVariables":[{"name":"replicas","value":"2"}]}} sets that one value and keeps all others. By ${mergePatch} the list would have this one entry.`,
        body: bodies(ClusterConfiguration),
      },
    },
    (request, reply) => answerChange(request, reply, verbsOf(change, patched(request, applyPart))),
  )

  app.patch(
    `${path}/:clusterName`,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        ...named,
        operationId: 'patchNamedCluster',
        summary: 'Change a part of the configuration of the cluster of this name',
        description: `${media} application/json is a list of operations as in RFC 6902.`,
        body: bodies(ClusterPatch),
      },
    },
    (request, reply) => {
      const write = { ...patched(request, applyPatches), name: request.params.clusterName }
      return answerChange(request, reply, verbsOf(change, write))
    },
  )
}

/** @returns another document, of which nothing is checked */
type Patch = (document: unknown, body: unknown) => unknown

// A body for the other path would change nothing: its members are not known here.
const applyPart: Patch = (document, body) => {
  if (isMap(body) && Object.hasOwn(body, operations))
    throw refusedField(
      operations,
      'is for PATCH /v1/edge-mgmt/cluster/{clusterName}; this path takes a part of a configuration',
    )
  return applyConfigurationPart(document, body)
}

const applyPatches: Patch = (document, body) => {
  const { clusterConfigPatches } = body as ClusterPatch
  if (clusterConfigPatches === undefined && isMap(body) && Object.keys(body).length > 0)
    throw refusedField(
      operations,
      `is missing; a part of a configuration is for PATCH /v1/edge-mgmt/cluster, or for Content-Type ${mergePatch}`,
    )
  return applyJsonPatch(document, clusterConfigPatches ?? [], operations)
}

const operations = 'clusterConfigPatches'
const isMap = (body: unknown): body is object => typeof body === 'object' && body !== null
function patchOf({ headers }: FastifyRequest, json: Patch): Patch {
  const [type] = (headers['content-type'] ?? '').split(';')
  const patches: Readonly<Record<string, Patch>> = {
    [mergePatch]: applyMergePatch,
    [jsonPatch]: applyJsonPatch,
  }
  return patches[type?.trim().toLowerCase() ?? ''] ?? json
}

const problemOf = createDocumentCheck(ClusterConfiguration, 'the patched configuration')

/** @throws AppError BadRequest with the path of a field that a patch brings and that is misspelt: nothing would be changed */
function requireSpelling(body: unknown): void {
  const patches = Array.isArray(body) ? (body as HttpPatch[]) : (body as ClusterPatch | null)?.[operations]
  for (const part of patches?.map(broughtBy) ?? [body]) {
    const misspelt = misspeltIn(part, ClusterConfiguration)
    if (misspelt) throw misspelt
  }
}

/** What an operation sets, as a part of the configuration. */
const broughtBy = ({ path, value }: HttpPatch): unknown =>
  path
    .split('/')
    .slice(1)
    .reduceRight<unknown>((inner, part) => (/^(?:\d+|-)$/.test(part) ? [inner] : { [part]: inner }), value)

/** What a patch makes has to be a configuration as one that is posted. */
function validated(document: unknown): ClusterConfiguration {
  const problem = problemOf(document)
  if (!problem) return document as ClusterConfiguration
  const { field, message } = problem
  throw new AppError(generalErrors.BadRequest, message, { details: { field } })
}

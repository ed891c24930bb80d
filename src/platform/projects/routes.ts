import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { refused } from '../../base/field-stance.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listInMemory } from '../../lists/memory.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { projectList, toProject, type Projects } from './projects.ts'
import { CreatedUid } from '../schemas.ts'
import { Project, ProjectCleanup, ProjectEntity } from './schemas.ts'
import { refuseRolesByKey } from '../requests/identify.ts'

export interface ProjectRoutesOptions {
  readonly projects: Projects
  /** The e-mail address of a user. */
  readonly emailOf: (uid: string) => string | undefined
  readonly listTokens: ContinueTokens
}

const Params = Type.Object({ uid: Uid })
const DeletionQuery = Type.Object({
  cleanupProjectResources: Type.Optional(
    Type.Boolean(refused('the hosts, clusters and profiles of a project are deleted before it')),
  ),
})
const resource = ({ params }: { readonly params: unknown }) => ({
  uid: uidOf((params as { readonly uid?: unknown }).uid),
})

/** Projects of the tenant: `/v1/projects…`. */
export const projectRoutes: FastifyPluginAsyncTypebox<ProjectRoutesOptions> = async (
  app,
  { projects, emailOf, listTokens },
) => {
  /** Roles by the names of the users, as the trail has them. */
  const rolesByName = (
    users: readonly { readonly userId: string; readonly roles: readonly string[] }[] = [],
  ) => Object.fromEntries(users.map(({ userId, roles }) => [emailOf(userId) ?? userId, roles]))
  const tags = ['projects']
  const changes = (uid: string, request: FastifyRequest) => {
    const project = projects.get(uid, callerOf(request))
    const { name, labels, annotations } = project
    return { name, labels, annotations, roles: rolesByName(toProject(project).spec.users) }
  }
  const writable = (request: FastifyRequest) => {
    const { uid } = request.params as { readonly uid: string }
    const { labels, annotations, users } = projects.get(uid, callerOf(request))
    return [uid, labels, annotations, users]
  }

  app.post(
    '/v1/projects',
    {
      config: { access: 'admin', audit: { action: 'create', kind: 'project', changes } },
      schema: {
        operationId: 'createProject',
        tags,
        summary: 'Make a project',
        body: ProjectEntity,
        response: { 201: CreatedUid, ...errorReplies(400, 401, 403, 409) },
      },
    },
    async (request, reply) => {
      refuseRolesByKey(request, [], request.body.spec?.users ?? [])
      const uid = projects.create(request.body)
      request.auditResource = { uid, name: request.body.metadata.name }
      return reply.code(201).send({ uid })
    },
  )

  app.get(
    '/v1/projects',
    {
      config: { access: 'viewer', scope: 'own' },
      schema: {
        operationId: 'listProjects',
        tags,
        summary:
          'List projects, the newest first: all, or without a role for the tenant those where the user has one',
        querystring: listParameters(projectList),
        response: { 200: listOf(Project), ...errorReplies(400, 401, 403) },
      },
    },
    async (request) => {
      const query = parseListQuery(request.query, projectList, { tokens: listTokens })
      return listInMemory(projects.seenBy(callerOf(request)), query, projectList, toProject)
    },
  )

  app.get(
    '/v1/projects/:uid',
    {
      config: { writable, access: 'viewer', scope: 'own' },
      schema: {
        operationId: 'getProject',
        tags,
        summary: 'A project, and the roles of users in it',
        params: Params,
        response: { 200: Project, ...errorReplies(401, 403, 404) },
      },
    },
    async (request) => toProject(projects.get(request.params.uid, callerOf(request))),
  )

  app.put(
    '/v1/projects/:uid',
    {
      config: { writable, access: 'admin', audit: { action: 'update', kind: 'project', resource, changes } },
      schema: {
        operationId: 'updateProject',
        tags,
        summary: 'Replace users and labels of a project; annotations that are not named stay',
        params: Params,
        body: ProjectEntity,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const { uid } = request.params
      const { name, users } = projects.get(uid, callerOf(request))
      request.auditResource = { uid, name }
      refuseRolesByKey(request, users, request.body.spec?.users ?? [])
      projects.update(uid, request.body)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/v1/projects/:uid',
    {
      config: { writable, access: 'admin', audit: { action: 'delete', kind: 'project', resource, changes } },
      schema: {
        operationId: 'deleteProject',
        tags,
        summary: 'Delete a project, and the roles of users in it',
        params: Params,
        querystring: DeletionQuery,
        body: ProjectCleanup,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const { uid } = request.params
      request.auditResource = { uid, name: projects.get(uid, callerOf(request)).name }
      projects.remove(uid)
      return reply.code(204).send(null)
    },
  )
}

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { errorReplies } from '../../api/schemas.ts'
import type { Reading } from '../reading.ts'
import { ClusterRevisions } from '../change/schemas.ts'

export interface RevisionRoutesOptions {
  readonly reading: Pick<Reading, 'revisions'>
}

/** What was accepted for the cluster. */
export const revisionRoutes: FastifyPluginAsyncTypebox<RevisionRoutesOptions> = async (app, { reading }) => {
  app.get(
    '/v1/edge-mgmt/cluster/revisions',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listClusterRevisions',
        tags: ['cluster'],
        summary: 'Revisions of the cluster: what was accepted, when and by whom, and what became of it',
        description:
          'The newest first; the last 10 are kept, and always the active one and the last two good ones; all of them are given, without listmeta.',
        response: { 200: ClusterRevisions, ...errorReplies(401, 404) },
      },
    },
    async () => reading.revisions(),
  )
}

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { callerOf } from '../../api/guard.ts'
import { errorReplies } from '../../api/schemas.ts'
import type { Certificates } from '../certificates/certificates.ts'
import { CertificateDetails, RenewalAccepted } from '../certificates/schemas.ts'

export interface CertificateRoutesOptions {
  readonly certificates: Certificates
}

/** The certificates of Kubernetes, and their renewal. */
export const certificateRoutes: FastifyPluginAsyncTypebox<CertificateRoutesOptions> = async (
  app,
  { certificates },
) => {
  const tags = ['cluster']
  const path = '/v1/edge-mgmt/cluster'

  app.get(
    `${path}/certificates`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getClusterCertificates',
        tags,
        summary: 'The certificates of Kubernetes on this host: who has signed them, and when they end',
        description:
          'edgehostd renews those of the control plane by itself; the kubelet does that with the one of its client. Authorities are not renewed.',
        response: { 200: CertificateDetails, ...errorReplies(401, 404) },
      },
    },
    async () => certificates.details(),
  )

  app.post(
    `${path}/renew-certificates`,
    {
      config: {
        access: 'admin',
        audit: { action: 'action', kind: 'cluster', changes: 'certificates have no values that anyone sets' },
      },
      schema: {
        operationId: 'renewClusterCertificates',
        tags,
        summary: 'Renew the certificates of the control plane now',
        description:
          'The host does it by itself after the reply; the API server of the cluster is away for some seconds, workloads keep running. While a renewal is under way the reply has its uid, and nothing more is done. See renewal of GET, and the events of the cluster.',
        // A dry run is not possible, so a query that asks for one is refused.
        querystring: Type.Object({}, { additionalProperties: false }),
        response: { 201: RenewalAccepted, ...errorReplies(400, 401, 403, 404, 409, 507) },
      },
    },
    async (request, reply) => {
      const { uid, cluster, isRepeated } = await certificates.renew(callerOf(request).userName)
      request.auditResource = cluster
      request.auditNote = isRepeated ? 'one is under way' : 'renewal of the certificates'
      return reply.code(201).send({
        uid,
        message: isRepeated
          ? 'the certificates are being renewed already'
          : 'the certificates are being renewed',
      })
    },
  )
}

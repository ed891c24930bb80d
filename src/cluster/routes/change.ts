import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Change } from '../change/change.ts'
import { withSettings, type withDefinition } from '../change/edits.ts'
import { ClusterProfileConfiguration, ClusterRollback, EdgeClusterSettings } from '../change/schemas.ts'
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

export interface ChangeRoutesOptions {
  readonly change: Change
  readonly reading: Pick<Reading, 'compared'>
  readonly withDefinition: ReturnType<typeof withDefinition>
}

/** Writes of the whole configuration, or of a part of it, and the way back. */
export const changeRoutes: FastifyPluginAsyncTypebox<ChangeRoutesOptions> = async (
  app,
  { change, reading, withDefinition: toDefinition },
) => {
  app.setValidatorCompiler(lenientBodies)
  const path = '/v1/edge-mgmt/cluster'
  const changeConfig = changeConfigOf(reading)
  const whole =
    'All of it, as GET gives it: what is left out is not set any more. Masked values stay. Everything is checked before anything is changed; then the host makes the change by itself, and takes it back if the cluster does not run with it.'

  app.put(
    path,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'replaceCluster',
        summary: 'Change the cluster: replace its configuration',
        description: whole,
        body: ClusterConfiguration,
      },
    },
    (request, reply) =>
      answerChange(request, reply, verbsOf(change, { ...writerOf(request), edit: async () => request.body })),
  )

  app.put(
    `${path}/:clusterName`,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        ...named,
        operationId: 'replaceNamedCluster',
        summary: 'Change the cluster of this name: replace its configuration',
        description: whole,
        body: ClusterConfiguration,
      },
    },
    (request, reply) =>
      answerChange(
        request,
        reply,
        verbsOf(change, {
          ...{ ...writerOf(request), name: request.params.clusterName },
          edit: async () => request.body,
        }),
      ),
  )

  app.put(
    `${path}/profiles`,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'replaceClusterProfiles',
        summary: 'Change the definition of the cluster',
        description:
          'Values that were given before stay, also where a profile has a new uid and the old name; those of variables that are gone are left out. A new required variable without a value holds the change, and the cluster runs on.',
        body: ClusterProfileConfiguration,
      },
    },
    (request, reply) =>
      answerChange(
        request,
        reply,
        verbsOf(change, { ...writerOf(request), edit: toDefinition(request.body) }),
      ),
  )

  app.put(
    `${path}/settings`,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'replaceClusterSettings',
        summary: 'Change the NTP servers and SSH keys of the cluster',
        description: 'Both lists are replaced; one that is left out is empty then.',
        body: EdgeClusterSettings,
      },
    },
    (request, reply) =>
      answerChange(
        request,
        reply,
        verbsOf(change, { ...writerOf(request), edit: withSettings(request.body) }),
      ),
  )

  app.post(
    `${path}/rollback`,
    {
      config: { ...changeConfig, audit: { ...changeConfig.audit, action: 'action' } },
      schema: {
        ...changeSchema,
        operationId: 'rollBackCluster',
        summary: 'Apply an earlier revision of the cluster again',
        description:
          'Makes a new revision with its configuration and its definition. An older Kubernetes is restored from its copy, as long as that is kept, and only with discardChanges.',
        body: ClusterRollback,
      },
      // Everything in it may be left out, so it may be too.
      async preValidation(request) {
        const body: unknown = request.body
        request.body = body ?? {}
      },
    },
    (request, reply) => {
      const { revision, discardChanges = false } = request.body
      const rollback = { ...writerOf(request), revision, discardChanges }
      return answerChange(request, reply, {
        perform: (signal) => change.rollBack(rollback, signal),
        tryOut: (signal) => change.tryRollBack(rollback, signal),
      })
    },
  )
}

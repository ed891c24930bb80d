import { Failure } from '../../../ctl/exit-codes.ts'
import {
  certificateFile,
  certificateStep,
  quote,
  urlOf,
  type ReachedRegistry,
  type RuntimeConfiguration,
} from './reached.ts'

/**
 * For dockerd: a mirror of docker.io. It sends no password to a mirror, and takes no URL with one, so a registry with TLS, which wants one, can
 * only be pulled from by its own name. Source: https://docs.docker.com/docker-hub/image-library/mirror/ and https://docs.docker.com/engine/security/certificates/
 * @throws Failure for a registry with a password and without TLS
 */
export function configureDocker(registry: ReachedRegistry): RuntimeConfiguration {
  const { host, isTls, login } = registry
  const byName = `docker login --username edgehostd ${host}, then for example docker pull ${host}/docker.io/library/busybox:latest`
  if (isTls)
    return {
      files: certificateFile(registry, `/etc/docker/certs.d/${host}/ca.crt`),
      steps: [
        `dockerd sends no password to a mirror, and this registry wants one, so images have its name before theirs: ${byName}. GET /v1/edge-mgmt/content/registry/password has the password.`,
        certificateStep,
      ],
    }
  if (login)
    throw new Failure(
      'failed',
      `dockerd sends no password to a mirror, and this registry wants one. Either set content.registry.anonymous: true, which a registry on loopback allows, and restart edgehostd; or pull by the name of this registry: ${byName}`,
    )
  return {
    files: [
      {
        path: '/etc/docker/daemon.json',
        mode: '0644',
        content: `{\n  "registry-mirrors": [${quote(urlOf(registry))}]\n}\n`,
      },
    ],
    steps: [
      'If /etc/docker/daemon.json exists already, add the key to it. Then: systemctl reload docker.',
      `dockerd asks a mirror only for images of docker.io, and then docker.io. Images of other registries have the name of this one before theirs, as in: docker pull ${host}/quay.io/NAME:TAG`,
    ],
  }
}

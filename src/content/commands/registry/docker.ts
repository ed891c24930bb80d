import { Failure } from '../../../ctl/exit-codes.ts'
import { quote, urlOf, type ReachedRegistry, type RuntimeConfiguration } from './reached.ts'

/**
 * For dockerd: a mirror of docker.io. It sends no password to a mirror, and takes no URL with one.
 * Source: https://docs.docker.com/docker-hub/image-library/mirror/
 * @throws Failure where the registry wants a password
 */
export function configureDocker(registry: ReachedRegistry): RuntimeConfiguration {
  const { host, login } = registry
  const direct = `docker pull ${host}/docker.io/library/busybox:latest`
  if (login)
    throw new Failure(
      'failed',
      `dockerd sends no password to a mirror, and this registry wants one. Either set content.registry.anonymous: true, which a registry on 127.0.0.1 allows, and restart edgehostd; or pull by the name of this registry: docker login ${host}, then for example ${direct}`,
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

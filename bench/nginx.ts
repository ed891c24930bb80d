import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findPort, startServer, type ServerProcess } from './server-process.ts'

/** An nginx as Debian configures it. */
export interface Nginx extends ServerProcess {
  readonly httpPort: number
}

export interface NginxOptions {
  /** For its configuration and its log. */
  readonly folder: string
  /** What it serves. */
  readonly root: string
  /** PEM file, with `key.pem` beside it. */
  readonly certificate: string
  /** Further blocks of its server. */
  readonly locations?: string
  /** The only processor that it may use; undefined for all. */
  readonly core?: number | undefined
}

/** Starts nginx with the files of a folder, over TLS and over plain HTTP on loopback. */
export async function startNginx(options: NginxOptions): Promise<Nginx> {
  const { folder, root, certificate, locations = '', core } = options
  const [port, httpPort] = [await findPort(), await findPort()]
  const configuration = join(folder, 'nginx.conf')
  writeFileSync(
    configuration,
    `user root;
worker_processes ${core === undefined ? 'auto' : '1'};
daemon off;
pid ${folder}/nginx.pid;
error_log stderr;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  access_log off;
  default_type application/octet-stream;
  server {
    listen 127.0.0.1:${httpPort};
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${certificate};
    ssl_certificate_key ${join(dirname(certificate), 'key.pem')};
    ssl_protocols TLSv1.2 TLSv1.3;
    root ${root};
    location = /v1/ping { return 200; }
${locations}
  }
}
`,
  )
  const server = await startServer({
    command: ['nginx', '-e', 'stderr', '-c', configuration],
    ...{ port, certificate, path: '/v1/ping', log: join(folder, 'nginx.log'), core },
  })
  return { ...server, httpPort }
}

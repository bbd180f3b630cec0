package rabbit

import "errors"

// ports are the ports of one node.
type ports struct {
	amqp *port
	dist *port // the node's own, for rabbitmqctl to call
	ctl  *port // of rabbitmqctl
	epmd *port
	tls  *port
}

func reservePorts() (*ports, error) {
	p := &ports{}
	for _, to := range p.all() {
		reserved, err := reservePort()
		if err != nil {
			return nil, errors.Join(err, p.release())
		}
		*to = reserved
	}
	return p, nil
}

func (p *ports) all() []**port {
	return []**port{&p.amqp, &p.dist, &p.ctl, &p.epmd, &p.tls}
}

func (p *ports) release() error {
	var errs []error
	for _, reserved := range p.all() {
		if *reserved != nil {
			errs = append(errs, (*reserved).release())
		}
	}
	return errors.Join(errs...)
}
